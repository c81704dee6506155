/**
 * Measured work runs in processes of its own; here they are started, told what to do, given a
 * deadline and, when it passes, ended by their process id. Nothing outlives the conductor.
 */
import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const childPath = fileURLToPath(new URL('child.mjs', import.meta.url))
const running = new Set()
const idle = []
let stays = false

process.once('exit', endProcesses)

/** A smoke run saves the time of starting a process for every task. */
export function reuseProcesses() {
  stays = true
}

export function endProcesses() {
  for (const child of running) child.kill('SIGKILL')
}

function startProcess() {
  // What children print must not end up in our standard output.
  const child = fork(childPath, [], { stdio: ['ignore', 2, 2, 'ipc'] })
  running.add(child)
  child.once('exit', () => running.delete(child))
  return child
}

/** Starts one task; `result` settles when it is done, `exited` when its process has ended, too. */
export function begin(task, { deadlineMs = 600_000, heard = () => {} } = {}) {
  const child = idle.pop() ?? startProcess()
  const exited = new Promise((resolve) => {
    if (!stays) child.once('exit', resolve)
    else resolve()
  })
  const result = answerOf(child, `${task.role} of ${task.system}`, deadlineMs, heard)
  result.then(() => stays && idle.push(child)).catch(() => {})
  child.send({ ...task, stays })
  return { result, exited, tell: (message) => child.connected && child.send(message) }
}

function answerOf(child, name, deadlineMs, heard) {
  return new Promise((resolve, reject) => {
    const finish = (settle, value) => {
      clearTimeout(timer)
      child.off('message', hear).off('error', fail).off('exit', ended)
      settle(value)
    }
    const fail = (error) => finish(reject, error)
    const hear = (message) => {
      if ('result' in message) finish(resolve, message.result)
      else if ('error' in message) fail(new Error(`${name}: ${message.error}`))
      else heard(message)
    }
    const ended = (code, signal) => fail(new Error(`${name} ended with ${signal ?? code} and no result`))
    const timer = setTimeout(() => {
      fail(new Error(`${name} took more than ${deadlineMs} ms`))
      child.kill('SIGKILL')
    }, deadlineMs)
    child.on('message', hear).once('error', fail).once('exit', ended)
  })
}

/** One task from start to end. */
export async function measure(task, options) {
  const { result, exited } = begin(task, options)
  const answer = await result
  // Its sessions are gone and their statistics are written.
  await exited
  return answer
}
