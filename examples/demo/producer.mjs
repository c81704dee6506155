// The application of the demo: a table of documents whose rows change a few times per second, each
// change and its event in one transaction. Every tenth transaction rolls back.

const titles = ['Contract', 'Invoice', 'Offer', 'Report', 'Minutes', 'Plan', 'Letter', 'Review']
const documentCount = 100

export async function createTables(pool) {
  await pool.query(`
    create schema if not exists demo;
    create table if not exists demo.document (
      id integer primary key, title text not null, version integer not null default 0, approved boolean not null default false)`)
  await pool.query(
    `insert into demo.document (id, title)
     select n, ($1::text[])[1 + n % cardinality($1::text[])] || ' ' || n from generate_series(1, $2::int) n
     on conflict do nothing`,
    [titles, documentCount],
  )
}

/** The index lives in memory: after a restart it is filled from the source, then follows the log. */
export async function readDocuments(pool) {
  const { rows } = await pool.query('select id, title, version from demo.document')
  return rows
}

export class Producer {
  committed = 0
  rolledBack = 0
  #outbox
  #stopped = false
  #running = Promise.resolve()
  #wake = () => {}

  constructor(outbox) {
    this.#outbox = outbox
  }

  start(rate) {
    this.#running = this.#run(1_000 / rate)
  }

  async stop() {
    this.#stopped = true
    this.#wake()
    await this.#running
  }

  async #run(everyMs) {
    for (let number = 1; !this.#stopped; number++) {
      await this.#change(number).catch(() => {})
      await new Promise((resolve) => {
        this.#wake = resolve
        setTimeout(resolve, everyMs)
      })
    }
  }

  /** Row and event share one fate. */
  async #change(number) {
    let events = 0
    const work = this.#outbox.transaction(async (tx) => {
      const id = 1 + Math.floor(Math.random() * documentCount)
      const approved = number % 5 === 0
      const { rows } = await tx.query({
        text: 'update demo.document set version = version + 1, approved = approved or $2 where id = $1 returning *',
        values: [id, approved],
      })
      const ids = await this.#outbox.emit(tx, eventsOf(rows[0], approved))
      if (number % 10 === 9) throw new Error('rolled back on purpose')
      events = ids.length
    })
    await work.finally(() => {
      this.committed += events
      if (events === 0) this.rolledBack++
    })
  }
}

function eventsOf(document, approved) {
  const { id, title, version } = document
  const aggregate = ['document', id]
  const updated = { type: 'document.updated', aggregate, payload: { id, title, version } }
  const mail = { type: 'document.approved', aggregate, payload: { to: 'owner@example.org', title } }
  return approved ? [updated, mail] : [updated]
}
