// Starting other programs from the repository's root, and ending with a sentence.

import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'

export const root = new URL('../', import.meta.url)
const rootPath = fileURLToPath(root)

/** Ends the process with a message for the person in front of it. */
export function fail(message) {
  console.error(message)
  process.exit(1)
}

/** Runs a script of this repository with Node (ours, or another one); resolves with its exit code. */
export function runNode(path, args = [], env = {}, program = process.execPath) {
  return new Promise((resolve, reject) => {
    const child = spawn(program, [fileURLToPath(new URL(path, root)), ...args], {
      cwd: rootPath,
      env: { ...process.env, ...env },
      stdio: 'inherit',
    })
    const stopForwarding = forwardSignals(child)
    child.on('error', reject)
    child.on('exit', (code, signal) => {
      stopForwarding()
      resolve(code ?? (signal === 'SIGINT' ? 130 : 143))
    })
  })
}

/** The child ends first and says how; dying before it would leave it without a parent. */
function forwardSignals(child) {
  // Ctrl-C reaches the child through the terminal already; only wait for it.
  const onInt = () => {}
  const onTerm = () => child.kill('SIGTERM')
  process.on('SIGINT', onInt)
  process.on('SIGTERM', onTerm)
  return () => {
    process.off('SIGINT', onInt)
    process.off('SIGTERM', onTerm)
  }
}
