/**
 * The words that documents hold, once each: what a misspelt word may have meant, and how the word a
 * person is still typing may end. A search is offered only words of documents that its filters allow:
 * filters are access rules, and a correction would tell what other documents say.
 */
import { editDistance } from '../../../nearest.ts'
import type { Condition } from '../check-request.ts'
import type { Session } from './api.ts'
import type { DocumentRow } from './document.ts'
import type { PostgresGeneration } from './generations.ts'
import { allSql, Params } from './where.ts'

const WORD = /^\p{L}{4,24}$/u
/** Per document: what is more than this is no prose. */
const newWordsMax = 2_000
/** Words this process knows to be there, over all generations. */
const knownMax = 200_000
const nearMax = 5
const prunedAtOnce = 5_000

/** Remembers what it has written, so that an ordinary upsert writes no word at all. */
export class WordList {
  readonly #known = new Set<string>()
  /** The last word looked at, by generation. */
  readonly #pruned = new Map<string, string>()

  /** On its own, before the documents: sorted, so that two writers cannot deadlock. */
  async add(session: Session, { id, wordTable }: PostgresGeneration, rows: readonly DocumentRow[]): Promise<void> {
    const fresh = new Set<string>()
    for (const { texts } of rows) this.#collect(id, texts, fresh)
    if (fresh.size === 0) return
    await session.rows(
      `insert into ${wordTable} as w (word) select unnest($1::text[])
        on conflict (word) do update set written_at = now() where ${olderThan('w', 1)}`,
      [[...fresh].sort()],
    )
    if (this.#known.size > knownMax) this.#known.clear()
    for (const word of fresh) this.#known.add(`${id} ${word}`)
  }

  /** Once an hour: whoever knows a word has written it not long ago, so that `prune` does not remove it. */
  forget(): void {
    this.#known.clear()
  }

  /** Removes words that no document has held for days, some at a time. */
  async prune(session: Session, generation: PostgresGeneration): Promise<void> {
    const { id, wordTable } = generation
    const params = new Params()
    const after = params.add(this.#pruned.get(id) ?? '')
    const [row] = await session.rows(
      `with looked as (select word, written_at from ${wordTable} where word > ${after} order by word limit ${prunedAtOnce}),
       gone as (delete from ${wordTable} w using looked l where w.word = l.word and ${olderThan('w', 2)}
                  and not ${heldSql(generation, [], params)})
       select max(word) as last from looked`,
      params.values,
    )
    this.#pruned.set(id, row?.last ?? '')
  }

  #collect(generation: string, texts: readonly string[], fresh: Set<string>): void {
    const sizeMax = fresh.size + newWordsMax
    for (const text of texts) {
      for (const word of text.split(' ')) {
        if (fresh.size >= sizeMax) return
        if (WORD.test(word) && !this.#known.has(`${generation} ${word}`)) fresh.add(word)
      }
    }
  }
}

/** A word in use is marked once a day. */
const olderThan = (alias: string, days: number) => `${alias}.written_at < now() - interval '${days} days'`

/** The list of words, as one search may use it. */
export interface Wordbook {
  readonly session: Session
  readonly schema: string
  readonly generation: PostgresGeneration
  /** What the search is limited to. */
  readonly conditions: readonly Condition[]
}

/** Words that may be meant, the closest first; nothing for short words. */
export async function nearWords(book: Wordbook, word: string, unfinished: boolean): Promise<string[]> {
  if (!WORD.test(word)) return []
  const near = await held(book, await similar(book, word))
  return unfinished ? [...near, ...(await endings(book, word))] : near
}

/** All of them: a limit here would let words of hidden documents push out others. */
async function similar({ session, schema, generation }: Wordbook, word: string): Promise<string[]> {
  const rows = await session.rows(`select near as word from ${schema}.near($1::regclass, $2)`, [
    generation.wordTable,
    word,
  ])
  // One slip from four letters on, two from eight: fewer letters have too many neighbours.
  const slipsMax = word.length >= 8 ? 2 : 1
  return rows
    .map(({ word: other }) => ({ other: other as string, slips: editDistance(word, `${other}`) }))
    .filter(({ slips }) => slips > 0 && slips <= slipsMax)
    .sort((a, b) => a.slips - b.slips)
    .map(({ other }) => other)
}

/** The first of these words that a document within reach holds. */
async function held({ session, generation, conditions }: Wordbook, words: readonly string[]): Promise<string[]> {
  if (words.length === 0) return []
  const params = new Params()
  const list = params.add(words)
  const rows = await session.rows(
    `select word from (select * from unnest(${list}::text[]) with ordinality as u (word, place) order by place offset 0) w
      where ${heldSql(generation, conditions, params)} limit ${nearMax}`,
    params.values,
  )
  return rows.map(({ word }) => word as string)
}

/** `reviewi` finds nothing, because `reviewing` is indexed as `review`. */
async function endings({ session, generation, conditions }: Wordbook, word: string): Promise<string[]> {
  const params = new Params()
  const start = params.add(word)
  const rows = await session.rows(
    `select word from (select word from ${generation.wordTable}
        where word > ${start} and word < ${start} || U&'\\+10FFFF' order by word offset 0) w
      where ${heldSql(generation, conditions, params)} limit ${nearMax}`,
    params.values,
  )
  return rows.map(({ word: other }) => other as string)
}

/** Some document that meets the conditions holds `w.word`; letters only, so quotes are enough. */
function heldSql({ table, definition }: PostgresGeneration, conditions: readonly Condition[], params: Params): string {
  const query = `to_tsquery('pg_catalog.${definition.language}', '''' || w.word || '''')`
  return `exists (select from ${table} d where not d.deleted and d.words @@ ${query}${allSql(conditions, params)})`
}
