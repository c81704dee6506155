// A destination that takes calls as tasks: the script says when a task ends, and how.

import type { OutboxEvent } from '../../../src/event.ts'
import type { Capabilities, Outcome, Parked, Sink } from '../../../src/sinks/sink.ts'
import { label } from './stage.ts'

export type Task = { readonly events: readonly string[]; outcome: Outcome | undefined }

export class Tasks {
  readonly #tasks: Task[] = []
  /** The handles of each poll, and who asked. */
  readonly polls: { readonly by: string; readonly handles: readonly string[] }[] = []
  /** Ends tasks as they come; undefined: the script does. */
  judge: (events: readonly string[]) => Outcome | undefined = () => undefined
  /** Thrown by polls while set. */
  pollError: Error | undefined

  /** `a@1 b@1` for each task, in order. */
  get sent(): string[] {
    return this.#tasks.map(({ events }) => events.join(' '))
  }

  /** What the destination has applied: tasks end in their order. */
  get applied(): string[] {
    return this.#tasks.filter(({ outcome }) => outcome?.outcome === 'delivered').flatMap(({ events }) => events)
  }

  end(at: number, outcome: Outcome = { outcome: 'delivered' }): void {
    const task = this.#tasks[at]
    if (task === undefined) throw new Error(`no task ${at} among ${this.sent.join(' | ')}`)
    task.outcome = outcome
  }

  /** Handles asked for by one poll of this worker. */
  together(by: string): number {
    return Math.max(0, ...this.polls.filter((p) => p.by === by).map((p) => p.handles.length))
  }

  asked(by: string, at: number): boolean {
    return this.polls.some((poll) => poll.by === by && poll.handles.includes(String(at)))
  }

  sink(by = 'a', capabilities: Partial<Capabilities> = {}): Sink & { dead: boolean } {
    const tell = (handles: readonly string[]) => {
      this.polls.push({ by, handles })
      if (this.pollError !== undefined) throw this.pollError
      return handles.map((handle) => this.#tasks[Number(handle)]?.outcome)
    }
    return {
      name: 'tasks',
      dead: false,
      capabilities: { asynchronous: true, keepsOrder: true, ...capabilities },
      deliver: async (events: readonly OutboxEvent[]): Promise<Parked> => {
        const names = events.map(label)
        const at = this.#tasks.push({ events: names, outcome: this.judge(names) }) - 1
        return { parked: String(at) }
      },
      async poll(handles) {
        // A process that is gone asks nobody.
        return this.dead ? new Promise<never>(() => {}) : tell(handles)
      },
    }
  }
}
