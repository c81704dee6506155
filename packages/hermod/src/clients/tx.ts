/** What the engine needs of a transaction, and of an adapter that gives one. */

/**
 * What the engine needs of a transaction. Parameters are text or null, each cast in the statement
 * (`$1::text`, arrays as `$1::text::text[]`), and every result column is text under a name of one
 * lower-case word, so that any library carries both unchanged.
 */
export interface Tx {
  /** Rejects with PostgreSQL's own error: `code` is the SQLSTATE. */
  query(
    text: string,
    params: readonly (string | null)[],
    /** Prepare it under this name, where the library can. */
    name?: string,
  ): Promise<readonly Record<string, unknown>[]>
  /** `'unknown'`: the library cannot tell; the statement is then sent as it is. */
  readonly inTransaction: boolean | 'unknown'
}

/** One library: how its transaction is recognised and used, and how a caller gets one. */
export interface ClientAdapter {
  readonly library: string
  /** Completes "Pass …" in the error message. */
  readonly transaction: string
  /** Undefined: not an object of this library. */
  adapt(client: unknown): Tx | undefined
}
