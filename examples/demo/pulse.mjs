// What flows, as one line: events in and out per second, the head of the log, and per subscription
// how much waits and which rows need attention.

const PULSE = `
  select s.name, coalesce(s.held_cause, s.mode) as state,
         (select st.pos from outbox.step st order by st.id desc limit 1) as head,
         (select count(*) from outbox.lane l cross join lateral outbox.cursor_of(s.name, l.lane) c
            join outbox.log g on g.lane = l.lane and g.pos > c.pos
            join outbox.kind k on k.code = g.kind and s.definition -> 'types' ? k.type
           where l.subscription = s.name)
           + (select count(*) from outbox.delivery d where d.subscription = s.name and d.state = 'pending') as waiting,
         (select count(*) from outbox.delivery d where d.subscription = s.name and d.state = 'retrying') as retrying,
         (select count(*) from outbox.delivery d where d.subscription = s.name and d.state = 'dead') as dead
    from outbox.subscription s order by s.name desc`

export class Pulse {
  #pool
  #totals
  #last = { atMs: performance.now(), in: 0, out: 0 }

  /** `totals` gives what was committed and delivered since the start. */
  constructor(pool, totals) {
    this.#pool = pool
    this.#totals = totals
  }

  async line() {
    const { rows } = await this.#pool.query(PULSE)
    const now = { atMs: performance.now(), ...this.#totals() }
    const seconds = Math.max(0.001, (now.atMs - this.#last.atMs) / 1_000)
    const per = (name) => ((now[name] - this.#last[name]) / seconds).toFixed(1).padStart(5)
    const line = [
      `in ${per('in')}/s  out ${per('out')}/s  position ${rows[0]?.head ?? 0}`,
      ...rows.map(subscriptionText),
    ].join('  |  ')
    this.#last = now
    return line
  }
}

function subscriptionText({ name, state, waiting, retrying, dead }) {
  const word = state === 'live' ? 'ok' : state
  const extra = Number(retrying) > 0 ? `, ${retrying} retrying` : ''
  return `${name} ${word}: ${waiting} waiting${extra}, ${dead} dead`
}
