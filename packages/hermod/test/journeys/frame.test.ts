// The frame of journeys: queued, taken under a lease, kept, paused, resumed, cancelled, taken over.

import { describe, expect, it } from 'vitest'
import { useDatabase } from '../../../../test/support/database.ts'
import { eventually } from '../../../../test/support/eventually.ts'
import { createOutbox } from '../../src/index.ts'
import { createJourney, endJourney, type JourneyKind, keepJourney, takeJourney } from '../../src/journeys/journey.ts'
import type { JourneyHandler, Run } from '../../src/journeys/runner.ts'

const db = useDatabase()
const BY = { actor: 'ada', reason: 'because' }

function start(kind: JourneyKind, subject: string) {
  return createJourney(db.pool as never, { kind, subject, plan: { what: 'all' } }, BY)
}

const any = (kind: JourneyKind) => [{ kind, subject: null }]

/** Counts to `total`, a note each; waits at `gate` when there is one. */
function counting(kind: JourneyKind, total: number, gate?: (run: Run) => Promise<void>) {
  const undone: string[] = []
  const handler: JourneyHandler = {
    kind,
    run: async (run) => {
      for (let done = run.progress.done ?? 0; done < total; done++) {
        await gate?.(run)
        await run.note({ done: done + 1, total }, `at ${done + 1}`)
      }
      return { counted: total }
    },
    undo: async ({ journey }) => {
      undone.push(journey.subject)
    },
  }
  return { handler, undone }
}

describe('taking', () => {
  it('the oldest first, once, by a lease on the database clock; whoever finds it ended goes on', async () => {
    const first = await start('verify', 'one')
    await start('verify', 'one')
    const take = (owner: string, id?: bigint) => takeJourney(db.pool as never, owner, any('verify'), 5_000, id)
    const taken = await take('a')
    expect(taken).toMatchObject({ id: first.id, state: 'running', owner: 'a', subject: 'one' })
    expect(await take('b', first.id)).toBeUndefined()
    expect(await keepJourney(db.pool as never, first.id, 'a', 5_000, { progress: { done: 3 } })).toBe('run')
    await db.query(`update outbox.journey set owner_until = outbox.clock() where id = $1`, [first.id])
    expect(await take('b', first.id)).toMatchObject({ owner: 'b', progress: { done: 3 } })
    expect(await keepJourney(db.pool as never, first.id, 'a', 5_000)).toBeUndefined()
    expect(await endJourney(db.pool as never, first.id, 'a', 'failed')).toBe(false)
    expect(await endJourney(db.pool as never, first.id, 'b', 'succeeded')).toBe(true)
  })

  it('never two rebuilds of one index, a first fill included; another index does not wait', async () => {
    const first = await start('rebuild', 'docs')
    await start('backfill', 'docs')
    const other = await start('rebuild', 'people')
    const takes = [...any('rebuild'), ...any('backfill')]
    const take = (owner: string) => takeJourney(db.pool as never, owner, takes, 5_000)
    const got = await Promise.all(['a', 'b', 'c', 'd'].map(take))
    const more = [...got, await take('e')].flatMap((one) => (one ? [one.id] : []))
    expect(more.sort()).toEqual([first.id, other.id])
  })

  it('an idle look writes nothing', async () => {
    const client = await db.pool.connect()
    try {
      await client.query('begin')
      await takeJourney(client as never, 'x', any('replay'), 1_000)
      const { rows } = await client.query('select pg_current_xact_id_if_assigned() as xid')
      expect(rows[0].xid).toBeNull()
      await client.query('rollback')
    } finally {
      client.release()
    }
  })
})

describe('running', () => {
  it('a worker runs what it has a handler for, tells how far it is, and keeps the result', async () => {
    const heard: unknown[] = []
    const listener = { journey: (event: { state: string }) => void heard.push(event.state) }
    const outbox = createOutbox({ pool: db.pool, listener })
    outbox.journeys.handle(counting('verify', 3).handler)
    const worker = await outbox.start({ upkeep: false })
    try {
      const { id } = await start('verify', 'told')
      const done = await outbox.journeys.wait(id)
      expect(done).toMatchObject({ state: 'succeeded', result: { counted: 3 }, phase: 'at 3' })
      expect(done.progress).toMatchObject({ done: 3, total: 3 })
      await eventually(() => expect(heard.at(-1)).toBe('succeeded'))
    } finally {
      await worker.stop()
    }
  })

  it('pause keeps the place, resume goes on there, and every decision is recorded once', async () => {
    const outbox = createOutbox({ pool: db.pool })
    let steps = 0
    const stopAt2 = async (run: Run) => {
      if (++steps === 3) {
        await outbox.journeys.pause(run.journey.id, { ...BY, requestId: 'pause-1' })
        await run.pause(10_000)
      }
    }
    outbox.journeys.handle(counting('verify', 4, stopAt2).handler)
    const { id } = await start('verify', 'paused')
    expect(await outbox.journeys.run(id, { leaseMs: 400 })).toMatchObject({
      state: 'paused',
      progress: { done: 2 },
    })
    await outbox.journeys.resume(id, BY)
    expect(await outbox.journeys.run(id)).toMatchObject({ state: 'succeeded' })
    expect(steps).toBe(5)
    const actions = (await outbox.audit({ subscription: 'paused' })).map(({ action }) => action)
    expect(actions.reverse()).toEqual(['verify.start', 'verify.pause', 'verify.resume'])
    await expect(outbox.journeys.pause(id, BY)).rejects.toMatchObject({ code: 'HMD_JOURNEY_STATE' })
    await expect(outbox.journeys.cancel(999_999n, BY)).rejects.toMatchObject({
      code: 'HMD_JOURNEY_UNKNOWN',
    })
  })

  it('cancel cleans up; one that was never begun is simply gone', async () => {
    const outbox = createOutbox({ pool: db.pool })
    const begun = counting('backfill', 5, async (run) => {
      await outbox.journeys.cancel(run.journey.id, BY)
      await run.pause(10_000)
    })
    outbox.journeys.handle(begun.handler)
    const waiting = await start('backfill', 'never')
    expect(await outbox.journeys.cancel(waiting.id, BY)).toMatchObject({ state: 'cancelled' })
    const { id } = await start('backfill', 'begun')
    expect(await outbox.journeys.run(id, { leaseMs: 400 })).toMatchObject({ state: 'cancelled' })
    expect(begun.undone).toEqual(['begun'])
  })

  it('what goes wrong is kept in words, and the journey can be resumed', async () => {
    const outbox = createOutbox({ pool: db.pool })
    let fails = true
    outbox.journeys.handle({
      kind: 'rebuild',
      run: async () => {
        if (fails) throw new Error('the source has no key')
        return undefined
      },
    })
    const { id } = await start('rebuild', 'wrong')
    expect(await outbox.journeys.run(id)).toMatchObject({
      state: 'failed',
      error: 'the source has no key',
    })
    fails = false
    await outbox.journeys.resume(id, BY)
    expect(await outbox.journeys.run(id)).toMatchObject({ state: 'succeeded', error: null })
  })

  it('a process that stops gives its journey away at once', async () => {
    const outbox = createOutbox({ pool: db.pool })
    let entered = () => {}
    const inside = new Promise<void>((resolve) => {
      entered = resolve
    })
    const slow = counting('rebuild', 2, async (run) => {
      entered()
      await run.pause(60_000)
    })
    outbox.journeys.handle(slow.handler)
    const worker = await outbox.start({ upkeep: false })
    const { id } = await start('rebuild', 'given')
    outbox.journeys.wake()
    await inside
    await worker.stop()
    expect(await outbox.journeys.show(id)).toMatchObject({ state: 'queued', owner: null })
    const other = createOutbox({ pool: db.pool })
    other.journeys.handle(counting('rebuild', 2).handler)
    expect(await other.journeys.run(id)).toMatchObject({ state: 'succeeded' })
  })
})
