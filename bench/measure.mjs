/**
 * Measured work runs in processes of its own; here they are started, told what to do, given a
 * deadline and, when it passes, ended by their process id. Nothing outlives the conductor.
 */
import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const childPath = fileURLToPath(new URL('child.mjs', import.meta.url))
const running = new Set()

process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL')
})

/** Starts a process for one task; `result` settles when it ends. */
export function begin(task, { deadlineMs = 600_000, heard = () => {} } = {}) {
  // What children print must not end up in our standard output.
  const child = fork(childPath, [], { stdio: ['ignore', 2, 2, 'ipc'] })
  running.add(child)
  const name = `${task.role} of ${task.system}`
  const result = new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      child.kill('SIGKILL')
      reject(new Error(`${name} took more than ${deadlineMs} ms`))
    }, deadlineMs)
    child.on('message', (message) => {
      if ('result' in message) resolve(message.result)
      else if ('error' in message) reject(new Error(`${name}: ${message.error}`))
      else heard(message)
    })
    child.once('error', reject)
    child.once('exit', (code, signal) => {
      clearTimeout(timer)
      running.delete(child)
      reject(new Error(`${name} ended with ${signal ?? code} and no result`))
    })
  })
  result.catch(() => {})
  child.send(task)
  const exited = new Promise((resolve) => child.once('exit', resolve))
  return { result, exited, tell: (message) => child.connected && child.send(message) }
}

/** One task from start to end. */
export async function measure(task, options) {
  const { result, exited } = begin(task, options)
  const answer = await result
  // Its sessions are gone and their statistics are written.
  await exited
  return answer
}
