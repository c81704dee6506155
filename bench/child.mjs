/**
 * A measured process: gets a task, plays its role with its system, answers, ends. In a smoke run it
 * stays for the next task.
 */
import { readySystem } from './systems.mjs'

const waiting = new Map()

/** What a role may say to the conductor and hear from it. */
const session = {
  tell: (message) => process.send(message),
  told: (word) => new Promise((resolve) => waiting.set(word, resolve)),
}

const leave = () => process.exit(1)
process.once('disconnect', leave)
process.on('message', async ({ word, ...task }) => {
  if (word !== undefined) return waiting.get(word)?.(task)
  const answer = await attempt(task)
  if (task.stays) return process.send(answer)
  process.off('disconnect', leave)
  // Whatever a library leaves open (timers, pools) does not keep the process.
  process.send(answer, () => process.exit(0))
})

async function attempt(task) {
  waiting.clear()
  try {
    const { play } = await import(`./roles/${task.role}.mjs`)
    return { result: (await play(await readySystem(task.system), task, session)) ?? null }
  } catch (error) {
    return { error: error.stack ?? String(error) }
  }
}
