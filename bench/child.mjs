/** A measured process: gets one task, plays its role with its system, answers, ends. */
import { readySystem } from './systems.mjs'

const waiting = new Map()

/** What a role may say to the conductor and hear from it. */
const session = {
  tell: (message) => process.send(message),
  told: (word) => new Promise((resolve) => waiting.set(word, resolve)),
}

process.once('disconnect', () => process.exit(1))
process.once('message', async (task) => {
  process.on('message', ({ word, ...rest }) => waiting.get(word)?.(rest))
  try {
    const { play } = await import(`./roles/${task.role}.mjs`)
    process.send({ result: (await play(await readySystem(task.system), task, session)) ?? null })
  } catch (error) {
    process.send({ error: error.stack ?? String(error) })
  }
  // Whatever a library leaves open (timers, pools) does not keep the process.
  process.removeAllListeners('disconnect')
  process.disconnect()
  setTimeout(() => process.exit(0), 200).unref()
})
