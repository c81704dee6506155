/**
 * The file system as a destination: what documents of the provider `local` contain lies in one file
 * each. The rows are read when events are delivered, so large content needs no large events.
 */
import type { SubscriptionOptions } from 'hermod'
import { delivered, misconfigured, type Outcome, retry, type Sink, superseded, unavailable } from 'hermod/sinks'
import type { Asked, Platform } from '../../platform.ts'
import { fileNameOf } from './file-names.ts'
import { type FileContent, FolderGone, WorkspaceFolder } from './folder.ts'

export const workspaceSubscription = 'workspace-local'

/** What a file is to hold, without the position; null = not a document of ours. */
export type LocalContent = Omit<FileContent, 'position'> | null

const changing = ['created', 'replaced', 'content_changed', 'deleted']

/** For reactions.ts. */
export function workspaceReaction(platform: Platform): SubscriptionOptions {
  return {
    revision: 1,
    // An event is named after the most important change, which is content: no other kind changes a file.
    types: ['draft', 'document'].flatMap((noun) => changing.map((verb) => `${noun}.${verb}`)),
    aggregates: ['document'],
    coalesce: 'latest',
    // A slow disk never delays search.
    priority: -10,
    from: 'beginning',
    // Content may be megabytes: few at a time.
    batch: { count: 50 },
    inFlightMax: 1,
    load: (events) =>
      localContents(
        platform.pool,
        events.map(({ aggregateId }) => aggregateId),
      ),
    sink: fileSink(platform.config.workspace.folder),
  }
}

const CURRENT = `select id, provider_file_id as "providerFileId", version, content, workspace_provider = 'local' as local
  from hermod.document where id = any ($1::uuid[])`
/** A document that is gone is remembered by the audit trail. */
const GONE = `select distinct on (document_id) document_id as id, provider_file_id as "providerFileId", version, null as content,
    workspace_provider = 'local' as local
  from hermod.document_modification_log where document_id = any ($1::uuid[]) order by document_id, id desc`

export async function localContents(db: Asked, ids: readonly string[]): Promise<Map<string, LocalContent>> {
  const { rows } = await db.query(CURRENT, [ids])
  const there = new Set(rows.map(({ id }) => id))
  const gone = ids.filter((id) => !there.has(id))
  if (gone.length > 0) rows.push(...(await db.query(GONE, [gone])).rows)
  return new Map(
    rows.map(({ id, local, providerFileId, version, content }) => [
      id,
      local ? { documentId: id, providerFileId, version, content } : null,
    ]),
  )
}

export function fileSink(path: string): Sink {
  let opened: Promise<WorkspaceFolder> | undefined
  const folder = () => {
    opened ??= WorkspaceFolder.open(path).catch((error) => {
      opened = undefined
      throw error
    })
    return opened
  }
  return {
    name: 'local-files',
    capabilities: { itemsMax: 50, perItemResult: true },
    probe: async () => (await folder()).assertThere(),
    deliver: async (events) => {
      try {
        const into = await folder()
        await into.assertThere()
        const outcomes = await Promise.all(
          events.map((event) => place(into, event.payload as LocalContent, event.position)),
        )
        await into.sync()
        return outcomes
      } catch (error) {
        return events.map(() => outcomeOf(error))
      }
    },
  }
}

async function place(folder: WorkspaceFolder, content: LocalContent | undefined, position: bigint): Promise<Outcome> {
  if (content === null || content === undefined) return delivered()
  try {
    const next = { ...content, position: String(position) }
    const done = await folder.put(fileNameOf(content.providerFileId), next)
    return done === 'superseded' ? superseded() : delivered()
  } catch (error) {
    return outcomeOf(error)
  }
}

/** The disk is full, slow or gone; or we may not write there. */
const AWAY = new Set(['ENOSPC', 'EDQUOT', 'EIO', 'EROFS', 'EMFILE', 'ENFILE', 'ESTALE', 'EBUSY'])
const WRONG = new Set(['EACCES', 'EPERM', 'ENOTDIR', 'ENOENT'])

function outcomeOf(error: unknown): Outcome {
  const { code, message } = error as NodeJS.ErrnoException
  if (error instanceof FolderGone) return misconfigured({ code: 'folder_gone', message })
  const details = { code: code ?? 'unknown', message: `the workspace folder answers ${code}` }
  if (code !== undefined && AWAY.has(code)) return unavailable(details)
  return code !== undefined && WRONG.has(code) ? misconfigured(details) : retry(details)
}
