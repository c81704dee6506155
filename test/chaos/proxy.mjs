// Our own network between everything: a process of its own that passes bytes on, holds them, slows
// them, cuts them, or passes them one by one. One link per client and side.

import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { child } from './processes.mjs'

const slicedMax = 2_048
const links = new Map()
const { tell } = child({ open, fault, stop: () => {} })
tell({ ready: true })

/** Opens links `{name, to}`; answers their ports. */
async function open({ wanted }) {
  const ports = {}
  for (const { name, to } of wanted) {
    const link = { name, to, pairs: new Set(), port: 0 }
    links.set(name, link)
    await listen(link)
    ports[name] = link.port
  }
  return { ports }
}

async function listen(link) {
  for (let attempt = 1; ; attempt++) {
    link.server = createServer((client) => join(link, client))
    try {
      link.server.listen(link.port, '127.0.0.1')
      await once(link.server, 'listening')
      link.port = link.server.address().port
      return
    } catch (error) {
      // While nobody listened, somebody's outgoing connection may have got the port.
      if (attempt === 100) throw error
      await pause(50)
    }
  }
}

/** `workers/db` and `workers/sink` are those of all workers. */
function meant(link, name) {
  return link === name || link.replace(/^worker-\d+/, 'workers') === name
}

/** Answers when the fault is over: how many connections it met. */
async function fault({ name, kind, ms = 0, delayMs = 0 }) {
  const found = [...links.values()].filter((link) => meant(link.name, name))
  for (let look = 0; look < 400 && kind !== 'refuse' && found.every(({ pairs }) => pairs.size === 0); look++)
    await pause(20)
  const met = found.reduce((sum, { pairs }) => sum + pairs.size, 0)
  await Promise.all(found.map((link) => faults[kind](link, ms, delayMs)))
  return { met }
}

const faults = {
  /** Established connections never speak again; new ones work. The far end hears of it after `ms`. */
  async hole(link, ms) {
    const silent = [...link.pairs]
    for (const pair of silent) pair.silent = true
    await pause(ms)
    for (const { far } of silent) far.destroy()
  },
  /** Nothing passes for a while, then everything does. */
  async mute(link, ms) {
    link.held = pause(ms)
    await link.held
    link.held = undefined
  },
  async slow(link, ms, delayMs) {
    link.delayMs = delayMs
    await pause(ms)
    link.delayMs = 0
  },
  async cut(link) {
    for (const pair of link.pairs) cut(pair)
  },
  /** Every answer breaks off after a few bytes: the far end has done what it was asked. */
  async 'cut-answer'(link, ms) {
    link.cutAnswer = true
    await pause(ms)
    link.cutAnswer = false
  },
  async slices(link, ms) {
    link.slices = true
    await pause(ms)
    link.slices = false
  },
  /** Two of them may overlap: the last to end listens again. */
  async refuse(link, ms) {
    link.refusing = (link.refusing ?? 0) + 1
    link.server.close()
    for (const pair of link.pairs) cut(pair)
    await pause(ms)
    if (--link.refusing === 0) await listen(link)
  },
}

function cut(pair) {
  pair.near.resetAndDestroy()
  pair.far.destroy()
}

function join(link, near) {
  const far = connect(link.to, '127.0.0.1')
  const pair = { near, far, silent: false }
  link.pairs.add(pair)
  for (const socket of [near, far]) {
    socket.setNoDelay(true)
    socket.on('error', () => {})
  }
  pass(link, pair, near, far, false)
  pass(link, pair, far, near, true)
}

/** One direction. A silent connection neither passes on bytes nor the news of its end. */
function pass(link, pair, from, to, answer) {
  let queue = Promise.resolve()
  from.on('data', (bytes) => {
    if (pair.silent) return
    from.pause()
    queue = queue.then(async () => {
      await carry(link, pair, to, bytes, answer)
      from.resume()
    })
  })
  from.on('close', () => {
    link.pairs.delete(pair)
    queue.then(() => pair.silent || to.destroySoon())
  })
}

async function carry(link, pair, to, bytes, answer) {
  while (link.held !== undefined) await link.held
  if (link.delayMs > 0) await pause(link.delayMs)
  if (pair.silent || to.destroyed) return
  if (answer && link.cutAnswer) {
    to.write(bytes.subarray(0, 5))
    return void setImmediate(() => cut(pair))
  }
  if (link.slices) return slices(to, bytes)
  if (!to.write(bytes)) await Promise.race([once(to, 'drain'), once(to, 'close')]).catch(() => {})
}

/** The first bytes one by one; the rest of a long message at once, or a run would never end. */
async function slices(to, bytes) {
  const sliced = Math.min(bytes.length, slicedMax)
  for (let at = 0; at < sliced; at++) {
    to.write(bytes.subarray(at, at + 1))
    if (at % 64 === 63) await pause(1)
  }
  if (sliced < bytes.length) to.write(bytes.subarray(sliced))
}
