// Child processes of the harness. Only what was started here is ever signalled, by its own pid.

import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

const running = new Set()

/** Starts one of the programs beside this file; resolves when it says that it is ready. */
export async function startProcess(file, config, hear = () => {}) {
  const child = fork(fileURLToPath(new URL(file, import.meta.url)), [JSON.stringify(config)], {
    stdio: ['ignore', 2, 2, 'ipc'],
  })
  const exited = adopt(child)
  const ready = await firstMessage(child, exited, file)
  child.on('message', hear)
  return { pid: child.pid, ready, exited, ask: asker(child, exited), kill: killer(child, exited) }
}

/** A process that was started elsewhere in the harness; it ends with the run. */
export async function adopt(child) {
  running.add(child)
  const [code, signal] = await once(child, 'exit')
  running.delete(child)
  return { code, signal }
}

async function firstMessage(child, exited, file) {
  const message = once(child, 'message').then(([said]) => said)
  const died = exited.then(({ code, signal }) => {
    throw new Error(`${file} ended before it was ready (${signal ?? code})`)
  })
  died.catch(() => {})
  return Promise.race([message, died])
}

let questions = 0

/** Sends `{ask, id, …}` and waits for `{answer: id, …}`; undefined when the process ends first. */
function asker(child, exited) {
  return (what, details = {}) => {
    if (!child.connected) return Promise.resolve(undefined)
    const id = ++questions
    const answer = new Promise((resolve) => {
      const hear = (said) => {
        if (said.answer !== id) return
        child.off('message', hear)
        resolve(said)
      }
      child.on('message', hear)
    })
    child.send({ ...details, ask: what, id }, () => {})
    return Promise.race([answer, exited.then(() => undefined)])
  }
}

function killer(child, exited) {
  return async () => {
    if (child.exitCode === null && child.signalCode === null) process.kill(child.pid, 'SIGKILL')
    await exited
  }
}

/** For the end of a run, however it came. Faults under way may start others until the process ends: `child` sees to them. */
export async function killAll() {
  const children = [...running]
  for (const child of children) {
    if (child.exitCode === null && child.signalCode === null) process.kill(child.pid, 'SIGKILL')
  }
  await Promise.all(children.map((child) => (running.has(child) ? once(child, 'exit') : null)))
}

/** The other side: what a child does with its channel. Ends with its parent. */
export function child(answers) {
  process.on('disconnect', () => process.exit(0))
  process.on('message', async ({ ask, id, ...details }) => {
    const result = await answers[ask]?.(details)
    const sent = () => ask === 'stop' && process.exit(0)
    if (process.connected) process.send({ ...result, answer: id }, sent)
  })
  return {
    config: JSON.parse(process.argv[2]),
    tell: (message) => process.connected && process.send(message),
  }
}
