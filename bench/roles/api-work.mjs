/** The platform's worker: every reaction, until it is told to stop. */
import { createPlatform, installReactions } from 'hermod-server'
import { apiConfig } from './api-serve.mjs'

export async function play(_system, { url }, session) {
  const platform = createPlatform(apiConfig(url, true))
  await installReactions(platform)
  const worker = await platform.outbox.start({})
  const stop = session.told('stop')
  session.tell({ word: 'ready' })
  await stop
  await worker.stop()
  await platform.close()
}
