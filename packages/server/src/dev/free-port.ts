/** The wanted port on loopback, or the next one that nobody has. */
import { createServer } from 'node:net'

const triesMax = 50

/** 0 = let the system choose. */
export async function freePortFrom(wanted: number): Promise<number> {
  if (wanted === 0) return 0
  for (let port = wanted; port < Math.min(wanted + triesMax, 65_536); port++) {
    if (await isFree(port)) return port
  }
  return 0
}

export function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  })
}
