// What only the PostgreSQL engine does: installing itself, remembering deletions, reading SQLSTATEs.

import pg from 'pg'
import { afterEach, describe, expect, it } from 'vitest'
import { useDatabase } from '../../../../test/support/database.ts'
import { eventually } from '../../../../test/support/eventually.ts'
import { HermodError } from '../../src/errors.ts'
import { outcomeOfSqlError } from '../../src/sinks/search/postgres/outcomes.ts'
import { type PostgresSearch, type PostgresSearchOptions, postgresSearch } from '../../src/sinks/search/postgres.ts'

const db = useDatabase({ empty: true })
const fields = { title: { kind: 'text', weight: 4 }, content: { kind: 'text' } } as const
const engines: PostgresSearch[] = []

function opened(options: PostgresSearchOptions = { connectionString: db.url }): PostgresSearch {
  const engine = postgresSearch(options)
  engines.push(engine)
  return engine
}

afterEach(async () => {
  for (const engine of engines.splice(0)) await engine.close()
})

const titled = (id: string, title: string, version: number, content = '') => ({
  id,
  version: BigInt(version),
  json: JSON.stringify({ title, content }),
})

describe('installing', () => {
  it('many processes at once install one schema', async () => {
    const made = Array.from({ length: 6 }, () => opened({ connectionString: db.url, schema: 'race' }))
    const ensured = await Promise.all(made.map((one) => one.ensureIndex('documents', { fields })))
    expect(ensured.filter(({ state }) => state === 'created')).toHaveLength(1)
    expect(await db.query('select version from race.installed')).toEqual([{ version: 2 }])
  })

  it('finds pg_trgm where somebody else has put it', async () => {
    await db.query('drop schema race cascade')
    await db.query('drop extension pg_trgm')
    await db.query('create schema "Other place"')
    await db.query('create extension pg_trgm schema "Other place"')
    const engine = opened({ connectionString: db.url, schema: 'elsewhere' })
    await engine.ensureIndex('documents', { fields })
    await engine.upsert('documents', [titled('a', 'Budget', 1)])
    expect((await engine.search('documents', { query: 'bugdet' })).total).toBe(1)
    await db.query('drop schema elsewhere cascade')
    await db.query('drop schema "Other place" cascade')
  })

  it('refuses a schema of a newer library, and options that make no sense', async () => {
    await opened({ connectionString: db.url, schema: 'newer' }).ensureIndex('d', { fields })
    await db.query('insert into newer.installed values (99)')
    const engine = opened({ connectionString: db.url, schema: 'newer' })
    await expect(engine.ensureIndex('d', { fields })).rejects.toThrow('version 99')
    for (const options of [
      ...[{}, { pool: db.pool, connectionString: db.url }, { pool: {} }],
      ...[{ pool: db.pool, schema: 'No"' }, { connectionString: '' }, { pool: db.pool, pol: 1 }],
    ]) {
      expect(() => postgresSearch(options as PostgresSearchOptions)).toThrow(HermodError)
    }
  })

  it('an empty index follows another declaration at once', async () => {
    const engine = opened()
    await engine.ensureIndex('empty', { fields })
    const more = { fields: { ...fields, pages: { kind: 'number' } } } as const
    expect(await engine.ensureIndex('empty', more)).toMatchObject({ state: 'updated' })
    expect(await engine.generations('empty')).toHaveLength(1)
    const hidden = {
      fields: { ...more.fields, pages: { kind: 'number', displayed: false } },
    } as const
    await engine.upsert('empty', [{ id: 'a', version: 1n, json: '{"title":"a","pages":1}' }])
    expect(await engine.ensureIndex('empty', hidden)).toMatchObject({ state: 'updated' })
    expect((await engine.get('empty', 'a'))?.document).toEqual({ title: 'a' })
  })
})

describe('searching', () => {
  it('a letter behind other words counts when it is a word', async () => {
    const engine = opened()
    await engine.ensureIndex('short', { fields })
    await engine.upsert('short', [titled('a', 'Plan A', 1), titled('b', 'Plan B', 2)])
    const ids = async (query: string) => (await engine.search('short', { query })).hits.map(({ id }) => id).sort()
    expect(await ids('plan b')).toEqual(['b'])
    expect(await ids('plan x')).toEqual(['a', 'b'])
    expect(await ids('p')).toEqual(['a', 'b'])
  })

  it('two slips are forgiven in long words only', async () => {
    const engine = opened()
    await engine.ensureIndex('slips', { fields })
    await engine.upsert('slips', [titled('a', 'Responsibility plan', 1)])
    expect((await engine.search('slips', { query: 'resposnibilty ' })).total).toBe(1)
    expect((await engine.search('slips', { query: 'plom ' })).total).toBe(0)
  })

  it('a document whose words do not fit is found by its beginning', async () => {
    const engine = opened()
    await engine.ensureIndex('wide', { fields })
    // Words of three bytes a letter: 200,000 characters are more than a tsvector takes twice over.
    const content = Array.from({ length: 40_000 }, (_, at) =>
      [...at.toString(5).padStart(7, '0')].map((digit) => 'ऄअआइई'[Number(digit)]).join(''),
    ).join(' ')
    const both = [titled('a', 'needle', 1, content), titled('b', 'other', 2)]
    const outcomes = await engine.upsert('wide', both.slice(0, 1))
    expect(outcomes[0]?.outcome).toBe('delivered')
    expect((await engine.search('wide', { query: 'needle' })).total).toBe(1)
    expect((await engine.get('wide', 'a'))?.document.content).toBe(content)
  })

  it('a statement nobody waits for any more is cancelled', async () => {
    const engine = opened()
    await engine.ensureIndex('locked', { fields })
    const holder = new pg.Client({ connectionString: db.url })
    await holder.connect()
    await holder.query(`begin; lock table search.locked_g${await generationOf('locked')}`)
    const stop = new AbortController()
    const write = engine.upsert('locked', [titled('a', 'x', 1)], { signal: stop.signal })
    const waiting = `select from pg_stat_activity where datname = current_database()
                        and application_name = 'hermod-search' and wait_event_type = 'Lock'`
    await eventually(async () => (await db.query(waiting)).length === 1)
    stop.abort()
    expect((await write)[0]?.outcome).toBe('unavailable')
    await eventually(async () => (await db.query(waiting)).length === 0)
    await holder.end()
  })
})

async function generationOf(index: string): Promise<string> {
  const [row] = await db.query('select id from search.generation where index_name = $1', [index])
  return String(row?.id)
}

describe('deletions', () => {
  it('are remembered for a while, then forgotten', async () => {
    const engine = opened()
    await engine.ensureIndex('gone', { fields })
    await engine.delete('gone', [{ id: 'a', version: 5n }])
    const table = `search.gone_g${await generationOf('gone')}`
    await db.query(`update ${table} set deleted_at = now() - interval '8 days'`)
    await engine.delete('gone', [{ id: 'b', version: 6n }])
    expect(await db.query(`select id from ${table} order by id`)).toHaveLength(2)
    // Another process looks at them with its first write.
    await opened().delete('gone', [{ id: 'c', version: 7n }])
    expect(await db.query(`select id from ${table} order by id`)).toEqual([{ id: 'b' }, { id: 'c' }])
  })
})

describe('the list of words', () => {
  const words = async (index: string) => {
    const rows = await db.query(`select word from search.${index}_g${await generationOf(index)}_word order by word`)
    return rows.map(({ word }) => word)
  }

  it('offers only words of documents that the filters allow', async () => {
    const engine = opened()
    const owned = { fields: { ...fields, owner: { kind: 'keyword' } } } as const
    await engine.ensureIndex('owned', owned)
    const of = (id: string, owner: string, title: string, version: number) => {
      return { id, version: BigInt(version), json: JSON.stringify({ title, owner }) }
    }
    await engine.upsert('owned', [of('a', 'ada', 'Budget cuts', 1), of('b', 'bo', 'Holiday', 2)])
    const asked = async (query: string, owner: string) => {
      const { total, corrected } = await engine.search('owned', { query, filters: { owner } })
      return { total, corrected }
    }
    for (const query of ['bugdet', 'bugdet ', 'budge']) {
      expect((await asked(query, 'ada')).total, query).toBe(1)
      expect(await asked(query, 'bo'), query).toEqual({ total: 0, corrected: false })
    }
    await engine.delete('owned', [{ id: 'a', version: 3n }])
    expect(await asked('bugdet', 'ada')).toEqual({ total: 0, corrected: false })
  })

  it('loses, after days, what no document holds', async () => {
    const engine = opened()
    await engine.ensureIndex('pruned', { fields })
    await engine.upsert('pruned', [titled('a', 'Secret', 1), titled('b', 'Budget', 2)])
    await engine.delete('pruned', [{ id: 'a', version: 3n }])
    await opened().upsert('pruned', [titled('c', 'Something', 4)])
    expect(await words('pruned'), 'a process may still know it').toEqual(['budget', 'secret', 'something'])
    await db.query(
      `update search.pruned_g${await generationOf('pruned')}_word set written_at = now() - interval '3 days'`,
    )
    await opened().upsert('pruned', [titled('d', 'Something', 5)])
    expect(await words('pruned')).toEqual(['budget', 'something'])
  })

  it('of an older installation gets its times', async () => {
    const engine = opened()
    await engine.ensureIndex('older', { fields })
    await engine.upsert('older', [titled('a', 'Budget', 1)])
    await db.query('delete from search.installed where version = 2; insert into search.installed values (1)')
    for (const { id, index } of await db.query('select id, index_name as index from search.generation')) {
      await db.query(`alter table search."${index}_g${id}_word" drop column written_at`)
    }
    const newer = opened()
    await newer.ensureIndex('older', { fields })
    await newer.upsert('older', [titled('b', 'Holiday', 2)])
    expect((await newer.search('older', { query: 'hoilday' })).total).toBe(1)
    expect((await newer.search('older', { query: 'bugdet' })).total).toBe(1)
  })
})

describe('an error of the database', () => {
  const raised = (code: string) => Object.assign(new Error('it failed'), { code })
  const meanings: Record<string, [one: string, many: string]> = {
    '54000': ['rejected', 'split'],
    '22P05': ['rejected', 'split'],
    '22021': ['rejected', 'split'],
    '40001': ['retry', 'retry'],
    '40P01': ['retry', 'retry'],
    '55P03': ['retry', 'retry'],
    '42P01': ['misconfigured', 'misconfigured'],
    '42501': ['misconfigured', 'misconfigured'],
    '28P01': ['misconfigured', 'misconfigured'],
    '28000': ['misconfigured', 'misconfigured'],
    '3D000': ['misconfigured', 'misconfigured'],
    '42704': ['misconfigured', 'misconfigured'],
    '08006': ['unavailable', 'unavailable'],
    '57P01': ['unavailable', 'unavailable'],
    '57P03': ['unavailable', 'unavailable'],
    '53100': ['unavailable', 'unavailable'],
    '53300': ['unavailable', 'unavailable'],
    '25006': ['unavailable', 'unavailable'],
    ECONNREFUSED: ['unavailable', 'unavailable'],
    ECONNRESET: ['unavailable', 'unavailable'],
  }
  for (const [code, [one, many]] of Object.entries(meanings)) {
    it(`${code} is ${one}${one === many ? '' : `, ${many} in a batch`}`, () => {
      expect(outcomeOfSqlError(raised(code), 1).outcome).toBe(one)
      expect(outcomeOfSqlError(raised(code), 5).outcome).toBe(many)
    })
  }

  it('without a code is a lost connection, if it says so', () => {
    const ended = new Error('Cannot use a pool after calling end on the pool')
    expect(outcomeOfSqlError(ended, 1).outcome).toBe('unavailable')
    expect(outcomeOfSqlError(new Error('Connection terminated unexpectedly'), 1).outcome).toBe('unavailable')
  })
})
