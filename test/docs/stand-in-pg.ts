// `pg` as pages see it: the real one, but pools and clients left open are closed after the page.

import pg from 'pg'

const open = new Set<{ end(): Promise<void> }>()

class Pool extends pg.Pool {
  constructor(config?: pg.PoolConfig) {
    super(config)
    this.on('error', () => {})
    open.add(this)
  }
}

class Client extends pg.Client {
  constructor(config?: string | pg.ClientConfig) {
    super(config)
    open.add(this)
  }
}

export async function closeAll(): Promise<void> {
  for (const one of open) await one.end().catch(() => {})
  open.clear()
}

export { Client, Pool }
export default { ...pg, Pool, Client }
