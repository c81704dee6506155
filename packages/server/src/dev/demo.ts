/**
 * The demo: people, documents and a review in progress, written through the API once. A seeding that
 * was cut off goes on where it stopped, because each step has its Idempotency-Key.
 */
import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readFile, rename, writeFile } from 'node:fs/promises'
import { demoPeople } from '../access/development.ts'
import type { Actor } from '../actor.ts'
import { updatePerson } from '../people/commands.ts'
import { permissionsOf } from '../permissions.ts'
import { transaction } from '../platform.ts'
import type { RunningServer } from '../serve.ts'
import type { DataFolder } from './data-folder.ts'
import { type DemoClient, demoClient, demoNames } from './demo-client.ts'
import { type DemoDocument, demoDocuments } from './demo-documents.ts'

export interface DemoRecord {
  readonly id: string
  readonly slug: string
  readonly owner: string
}

export interface Demo {
  readonly client: DemoClient
  /** Empty with --no-demo. */
  readonly documents: readonly DemoRecord[]
}

export async function openDemo({ url, platform }: RunningServer, data: DataFolder, wanted: boolean): Promise<Demo> {
  const client = demoClient(url)
  // The curl examples act as Ada.
  const header = `Authorization: Bearer ${await client.token('ada')}\n`
  await writeFile(data.headerFile, header, { mode: 0o600 })
  const people = await meet(client, platform.pool)
  await giveRoles(platform, people)
  if (!wanted) return { client, documents: [] }
  const kept = data.demoFile
  if (existsSync(kept)) {
    return { client, documents: JSON.parse(await readFile(kept, 'utf8')) as DemoRecord[] }
  }
  const documents = await Promise.all(demoDocuments.map((each) => write(client, people, each)))
  await writeFile(`${kept}.new`, JSON.stringify(documents), { mode: 0o600 })
  await rename(`${kept}.new`, kept)
  return { client, documents }
}

type People = ReadonlyMap<string, string>

/** A person is created at the first request; after that the ids are known. */
async function meet(client: DemoClient, pool: RunningServer['platform']['pool']): Promise<People> {
  await Promise.all(demoNames.map((name) => client.ask(name, 'GET', '/health')))
  const { rows } = await pool.query<{ id: string; name: string }>(
    `select person_id::text as id, split_part(key, '@', 1) as name from hermod.person_identity
      where type = 'email' and key = any ($1) and deleted_at is null`,
    [demoNames.map((name) => `${name}@example.org`)],
  )
  return new Map(rows.map(({ id, name }) => [name, id]))
}

/** In the database too, they are what the page says: an API token depends on it, and so does who may write. */
async function giveRoles(platform: RunningServer['platform'], people: People): Promise<void> {
  for (const { name, role } of demoPeople) {
    const personId = people.get(name)
    if (personId === undefined) continue
    const actor = demoActor()
    await transaction(platform, (tx) =>
      updatePerson(platform, tx, actor, { personId, seen: undefined, change: { role } }),
    )
  }
}

function demoActor(): Actor {
  return {
    personId: null,
    identity: 'system:demo',
    role: 'admin',
    permissions: permissionsOf('admin'),
    signedInAt: new Date(),
    endpoint: 'npm start',
    userAgent: null,
    ip: null,
    requestId: randomUUID(),
  }
}

async function write(client: DemoClient, people: People, document: DemoDocument): Promise<DemoRecord> {
  const { slug, owner, fields, contributors = [], approvers = [], approved = [] } = document
  const ids = (names: readonly string[]) => names.map((name) => people.get(name) ?? '')
  const body = { ...fields, contributors: ids(contributors), approvers: ids(approvers) }
  const key = (step: string) => `demo-${slug}-${step}`
  const { id } = await client.ask<{ readonly id: string }>(owner, 'POST', '/drafts', {
    body,
    key: key('draft'),
  })
  if (document.published) await client.ask(owner, 'POST', `/reviews/${id}`, { key: key('review') })
  for (const name of approved) {
    const verdict = { body: { comment: 'Looks good.' }, key: key(`approval-${name}`) }
    await client.ask(name, 'POST', `/approvals/${id}`, verdict)
  }
  if (document.obsolete) {
    await client.ask(owner, 'PATCH', `/documents/${id}`, { body: { status: 'Obsolete' } })
  }
  return { id, slug, owner }
}
