/**
 * The words that documents hold, once each: what a misspelt word may have meant, and how the word a
 * person is still typing may end. Words stay when their documents go; a new generation starts afresh.
 */
import { editDistance } from '../../../nearest.ts'
import type { Session } from './api.ts'
import type { DocumentRow } from './document.ts'
import type { PostgresGeneration } from './generations.ts'

const WORD = /^\p{L}{4,24}$/u
/** Per document: what is more than this is no prose. */
const newWordsMax = 2_000
/** Words this process knows to be there, over all generations. */
const knownMax = 200_000
const nearMax = 5

/** Remembers what it has written, so that an ordinary upsert writes no word at all. */
export class WordList {
  readonly #known = new Set<string>()

  /** On its own, before the documents: sorted, so that two writers cannot deadlock. */
  async add(session: Session, { id, wordTable }: PostgresGeneration, rows: readonly DocumentRow[]): Promise<void> {
    const fresh = new Set<string>()
    for (const { texts } of rows) this.#collect(id, texts, fresh)
    if (fresh.size === 0) return
    await session.rows(`insert into ${wordTable} select unnest($1::text[]) on conflict do nothing`, [[...fresh].sort()])
    if (this.#known.size > knownMax) this.#known.clear()
    for (const word of fresh) this.#known.add(`${id} ${word}`)
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

/** Words that may be meant, the closest first; nothing for short words. */
export async function nearWords(
  session: Session,
  schema: string,
  { wordTable }: PostgresGeneration,
  word: string,
  unfinished: boolean,
): Promise<string[]> {
  if (!WORD.test(word)) return []
  const rows = await session.rows(`select near as word from ${schema}.near($1::regclass, $2)`, [wordTable, word])
  // One slip from four letters on, two from eight: fewer letters have too many neighbours.
  const slipsMax = word.length >= 8 ? 2 : 1
  const near = rows
    .map(({ word: other }) => ({ other: other as string, slips: editDistance(word, `${other}`) }))
    .filter(({ slips }) => slips > 0 && slips <= slipsMax)
    .sort((a, b) => a.slips - b.slips)
    .slice(0, nearMax)
    .map(({ other }) => other)
  return unfinished ? [...near, ...(await endings(session, wordTable, word))] : near
}

/** `reviewi` finds nothing, because `reviewing` is indexed as `review`. */
async function endings(session: Session, wordTable: string, word: string): Promise<string[]> {
  const rows = await session.rows(
    `select word from ${wordTable} where word > $1 and word < $1 || U&'\\+10FFFF' order by word limit ${nearMax}`,
    [word],
  )
  return rows.map(({ word: other }) => other as string)
}
