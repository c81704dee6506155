// A destination that answers with a task: taken at once, done later, one after the other, as search
// engines do. Some tasks end long after the lease of the worker that asked for them.

import { between } from './random.mjs'

export class Tasks {
  late
  poisoned = () => false
  #queues = new Map()
  #tasks = new Map()

  constructor({ history, random, accept, note, late }) {
    Object.assign(this, { history, random, accept, note, late })
  }

  add(call) {
    const id = this.#tasks.size + 1
    this.#tasks.set(id, { state: 'running', by: call.by })
    const before = this.#queues.get(call.sub.name) ?? Promise.resolve()
    const done = before.then(() => this.#run(id, call))
    this.#queues.set(call.sub.name, done)
    return id
  }

  async #run(id, call) {
    await new Promise((resolve) => setTimeout(resolve, this.#takesMs()))
    const task = this.#tasks.get(id)
    const bad = call.body.filter(({ payload: { key } }) => this.poisoned(key))
    task.state = bad.length > 0 ? 'failed' : 'succeeded'
    this.note(call, 'poison', bad)
    if (task.state === 'succeeded') this.accept(call, call.body, { task: id })
  }

  #takesMs() {
    if (this.late && this.random() < 0.01) return between(this.random, 3_200, 4_500)
    return between(this.random, 5, 60)
  }

  /** Another worker asks than the one that sent: the task was resumed. */
  poll({ sub, by, body }) {
    return body.map((id) => {
      const task = this.#tasks.get(id)
      if (task !== undefined && task.by !== by && !task.resumed) {
        task.resumed = true
        this.history.write({ k: 'some', name: 'task-resumed', sub: sub.name, task: id, from: task.by, by })
      }
      return task?.state ?? 'unknown'
    })
  }
}
