/** One batch of an import into the database: people by address, files already known, then the documents. */
import { HermodError } from 'hermod'
import type { Actor } from '../../actor.ts'
import type { Platform, Tx } from '../../platform.ts'
import { type FieldProblem, Problem } from '../../problems.ts'
import { insertDocuments, type NewDocument } from '../create.ts'
import type { CustomFields } from '../document.ts'
import { everybodyIn, knownPeople, type NamedPeople, namedPeople } from '../named-people.ts'
import type { Addresses } from './people.ts'
import type { ImportRow, RowDocument, RowError } from './rows.ts'

export interface BatchResult {
  readonly imported: number
  readonly failed: number
  readonly errors: readonly RowError[]
}

export interface BatchOptions {
  /** Addresses looked up before. */
  readonly addresses: Addresses
  /** Only say what would be wrong. */
  readonly check: boolean
  /** Something in this batch is refused by the database: find out what. */
  readonly careful: boolean
}

export async function importBatch(
  platform: Platform,
  tx: Tx,
  actor: Actor,
  batch: readonly ImportRow[],
  { addresses, check, careful }: BatchOptions,
): Promise<BatchResult> {
  const refusals = new Refusals()
  await addresses.learn(tx, batch)
  const wanted = batch.flatMap((row) => {
    const found = complete(platform, actor, row.document, addresses)
    if ('document' in found) return [{ row, document: found.document }]
    refusals.add(row, found.problems)
    return []
  })
  const named = await withPeople(tx, wanted, refusals)
  const fresh = await withoutKnownFiles(tx, actor, named, refusals, check)
  if (check) return refusals.result(0)
  const insert = careful ? insertCarefully : insertAll
  const imported = await insert(platform, tx, actor, fresh, refusals)
  return refusals.result(imported)
}

interface Wanted {
  readonly row: ImportRow
  readonly document: NewDocument
}

class Refusals {
  readonly #rows = new Set<number>()
  readonly #errors: RowError[] = []

  add({ row, line }: ImportRow, problems: readonly FieldProblem[]): void {
    this.#rows.add(row)
    this.#errors.push(...problems.map((problem) => ({ row, line, ...problem })))
  }

  result(imported: number): BatchResult {
    return { imported, failed: this.#rows.size, errors: this.#errors }
  }
}

type Completed = { readonly document: NewDocument } | { readonly problems: readonly FieldProblem[] }

/** Defaults, and people by what they are called in the file. */
function complete({ config }: Platform, { personId }: Actor, given: RowDocument, addresses: Addresses): Completed {
  const problems: FieldProblem[] = []
  const { workspaceProvider = config.workspace.provider, providerFileId } = given
  const detail = fileProblem(workspaceProvider, providerFileId)
  if (detail !== undefined) problems.push({ pointer: '/providerFileId', detail })
  const ids = (role: keyof NamedPeople, fallback: readonly string[]) =>
    given[role]?.flatMap((name, place) => {
      const found = addresses.idOf(name)
      if (found.id !== undefined) return [found.id]
      problems.push({ pointer: `/${role}/${place}`, detail: found.detail })
      return []
    }) ?? fallback
  const owners = unique(ids('owners', personId === null ? [] : [personId]))
  const contributors = unique(ids('contributors', []))
  const approvers = unique(ids('approvers', []))
  if (problems.length > 0) return { problems }
  const { title, docType, product, createdAt } = given
  const document: NewDocument = {
    title,
    docType,
    product,
    summary: given.summary ?? '',
    content: given.content ?? '',
    tags: given.tags ?? [],
    customFields: (given.customFields ?? {}) as CustomFields,
    status: given.status ?? 'In-Review',
    owners,
    contributors,
    approvers,
    workspaceProvider,
    ...(providerFileId !== undefined && { providerFileId }),
    ...(createdAt !== undefined && { createdAt: new Date(createdAt) }),
  }
  return { document }
}

function fileProblem(provider: string, file: string | undefined): string | undefined {
  if (provider === 'local') {
    return file === undefined ? undefined : 'is chosen by the server for local documents; leave it out'
  }
  return file === undefined ? `is missing: a ${provider} document has a file there` : undefined
}

function unique(ids: readonly string[]): string[] {
  return [...new Set(ids)]
}

async function withPeople(tx: Tx, wanted: readonly Wanted[], refusals: Refusals): Promise<Wanted[]> {
  const ids = unique(wanted.flatMap(({ document }) => everybodyIn(document)))
  const known = await knownPeople(tx, ids)
  return wanted.filter(({ row, document }) => {
    try {
      namedPeople(document, known)
      return true
    } catch (error) {
      if (!(error instanceof Problem)) throw error
      refusals.add(row, error.errors)
      return false
    }
  })
}

/** The id only of what the importer may see: a draft of others is `another document`. */
const TAKEN = `select d.workspace_provider as provider, d.provider_file_id as file,
    case when d.published_at is not null or exists (select from hermod.document_person i where i.document_id = d.id
      and i.person_id = $3 and i.relation in ('owner', 'contributor')) then d.id end as id
  from unnest($1::text[], $2::text[]) as g (provider, file)
  join hermod.document d on d.workspace_provider = g.provider and d.provider_file_id = g.file`
/** Nothing is inserted while checking: what the file itself names twice is found by remembering. */
const SEEN = `insert into pg_temp.import_seen (provider, file) select * from unnest($1::text[], $2::text[])
  on conflict do nothing returning provider, file`

export const CHECK_TABLE = `create temp table import_seen (provider text, file text, primary key (provider, file)) on commit drop`

async function withoutKnownFiles(
  tx: Tx,
  { personId }: Actor,
  wanted: readonly Wanted[],
  refusals: Refusals,
  check: boolean,
): Promise<Wanted[]> {
  const files = wanted.flatMap(({ document: { workspaceProvider, providerFileId } }) =>
    providerFileId === undefined ? [] : [[workspaceProvider, providerFileId] as const],
  )
  if (files.length === 0) return [...wanted]
  const columns = [files.map(([provider]) => provider), files.map(([, file]) => file)]
  const { rows } = await tx.query<{ provider: string; file: string; id: string | null }>(TAKEN, [...columns, personId])
  const taken = new Map(
    rows.map(({ provider, file, id }) => [keyOf(provider, file), id === null ? 'another document' : `document ${id}`]),
  )
  const fresh = check ? await notSeen(tx, columns) : undefined
  return wanted.filter(({ row, document: { workspaceProvider, providerFileId } }) => {
    if (providerFileId === undefined) return true
    const key = keyOf(workspaceProvider, providerFileId)
    const owner = taken.get(key)
    if (owner === undefined && (fresh === undefined || fresh.delete(key))) {
      taken.set(key, 'another row of this import')
      return true
    }
    const detail = `belongs to ${owner ?? 'another row of this import'} already`
    refusals.add(row, [{ pointer: '/providerFileId', detail }])
    return false
  })
}

async function notSeen(tx: Tx, columns: readonly (readonly string[])[]): Promise<Set<string>> {
  const { rows } = await tx.query<{ provider: string; file: string }>(SEEN, [...columns])
  return new Set(rows.map(({ provider, file }) => keyOf(provider, file)))
}

function keyOf(provider: string, file: string): string {
  return `${provider} ${file}`
}

async function insertAll(platform: Platform, tx: Tx, actor: Actor, wanted: readonly Wanted[]): Promise<number> {
  if (wanted.length === 0) return 0
  await insertDocuments(
    platform,
    tx,
    actor,
    wanted.map(({ document }) => document),
  )
  return wanted.length
}

/** Splits the batch in halves until only the refused rows are left. */
async function insertCarefully(
  platform: Platform,
  tx: Tx,
  actor: Actor,
  wanted: readonly Wanted[],
  refusals: Refusals,
): Promise<number> {
  await tx.query('savepoint careful')
  try {
    const imported = await insertAll(platform, tx, actor, wanted)
    await tx.query('release savepoint careful')
    return imported
  } catch (error) {
    const detail = refusalOf(error)
    if (detail === undefined) throw error
    await tx.query('rollback to savepoint careful; release savepoint careful')
    const [only, ...others] = wanted
    if (only !== undefined && others.length === 0) {
      refusals.add(only.row, detail)
      return 0
    }
    const middle = Math.ceil(wanted.length / 2)
    const first = await insertCarefully(platform, tx, actor, wanted.slice(0, middle), refusals)
    return first + (await insertCarefully(platform, tx, actor, wanted.slice(middle), refusals))
  }
}

/** What is wrong with the data; undefined if the data is not the cause. */
export function refusalOf(error: unknown): readonly FieldProblem[] | undefined {
  const { code, message } = (error ?? {}) as { code?: string; message?: string }
  if (error instanceof Problem) {
    if (error.status >= 500) return undefined
    return error.errors.length > 0 ? error.errors : [{ pointer: '/', detail: error.message }]
  }
  const ours = error instanceof HermodError && /^HMD_(PAYLOAD|EVENT)_/.test(error.code)
  const theirs = typeof code === 'string' && /^(22|23|54)/.test(code)
  return ours || theirs ? [{ pointer: '/', detail: `is refused: ${message}` }] : undefined
}
