/** How the words of a document become the tsvectors that are searched: the same when it is written and when it is verified. */
import type { DocumentRow } from './document.ts'
import type { PostgresGeneration } from './generations.ts'

/** Columns of `u`: `ident`, `a`, `b`, `c` and `d`, in the order of `textsOf`. */
export function vectorsSql({ definition }: PostgresGeneration): { readonly heading: string; readonly words: string } {
  const of = (text: string) => `to_tsvector('pg_catalog.${definition.language}', ${text})`
  const heading = `to_tsvector('pg_catalog.simple', u.ident) || ${of(`u.ident || ' ' || u.a`)}`
  return {
    heading: `strip(${heading})`,
    words: `setweight(${heading}, 'A') || setweight(${of('u.b')}, 'B') || setweight(${of('u.c')}, 'C') || ${of('u.d')}`,
  }
}

/** The five columns, for `unnest`. */
export function textsOf(rows: readonly DocumentRow[]): readonly (readonly string[])[] {
  return [
    rows.map(({ identifiers }) => identifiers),
    ...([0, 1, 2, 3] as const).map((weight) => rows.map(({ texts }) => texts[weight])),
  ]
}
