// A TCP proxy in front of a database whose connections can go mute: from then on nothing passes, and nobody is told.

import { connect, createServer, type Socket } from 'node:net'

export type MuteProxy = {
  readonly url: string
  /** Connections made so far. */
  readonly count: number
  /** Mute connections that were asked something since. */
  readonly asked: number
  /** Those that there are now; later ones work. */
  mute(): void
  close(): Promise<void>
}

type Pair = { readonly near: Socket; readonly far: Socket; mute: boolean; asked: boolean }

export async function muteProxy(to: string): Promise<MuteProxy> {
  const target = new URL(to)
  const pairs: Pair[] = []
  const server = createServer((near) => {
    const far = connect(Number(target.port), target.hostname)
    const pair = { near, far, mute: false, asked: false }
    pairs.push(pair)
    pass(pair, near, far)
    pass(pair, far, near)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = new URL(to)
  url.hostname = '127.0.0.1'
  url.port = String((server.address() as { port: number }).port)
  return {
    url: url.href,
    get count() {
      return pairs.length
    },
    get asked() {
      return pairs.filter(({ asked }) => asked).length
    },
    mute: () => {
      for (const pair of pairs) {
        pair.mute = true
        // The server's side ends, as it would after a while; the other side hears nothing of it.
        pair.far.destroy()
      }
    },
    close: async () => {
      for (const { near, far } of pairs) {
        near.destroy()
        far.destroy()
      }
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

function pass(pair: Pair, from: Socket, to: Socket): void {
  from.on('data', (data) => {
    if (!pair.mute) to.write(data)
    else if (from === pair.near) pair.asked = true
  })
  from.on('close', () => {
    if (!pair.mute) to.destroy()
  })
  from.on('error', () => {})
}
