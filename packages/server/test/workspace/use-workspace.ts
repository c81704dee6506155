// A server whose worker keeps the files of a local workspace, and drafts in it, which are ada's.

import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, expect } from 'vitest'
import { fileNameOf } from '../../src/documents/workspace/file-names.ts'
import { WorkspaceFolder } from '../../src/documents/workspace/folder.ts'
import { type ScanReport, scanWorkspace } from '../../src/documents/workspace/scan.ts'
import { type TestServer, useServer } from '../support/server.ts'

export interface Made {
  readonly id: string
  readonly version: string
  readonly name: string
}

export function useWorkspace() {
  const server = useServer()
  let folder: WorkspaceFolder
  beforeAll(async () => {
    folder = await WorkspaceFolder.open(server.folder)
    await server.work()
  })
  const path = (name: string) => join(server.folder, name)
  return {
    server,
    folder: () => folder,
    path,
    content: (name: string) => readFile(path(name), 'utf8'),
    scan: (names?: string[]): Promise<ScanReport> =>
      scanWorkspace(server.platform, folder, { settleMs: 0, ...(names && { names }) }),
    draft: (text: string) => draft(server, text),
    edit: (made: Made, changes: object) => edit(server, made, changes),
    stored: (made: Made) => stored(server, made),
  }
}

async function draft(server: TestServer, text: string): Promise<Made> {
  const body = { title: 'A draft', docType: 'RFC', product: 'Labs', content: text }
  const answer = await server.ask('POST', '/api/v2/drafts', { as: 'ada', body })
  expect(answer.statusCode, answer.body).toBe(201)
  const { id, version, providerFileId } = answer.json()
  return { id, version, name: fileNameOf(providerFileId) }
}

async function edit(server: TestServer, { id }: Made, changes: object): Promise<void> {
  const before = await server.ask('GET', `/api/v2/drafts/${id}`, { as: 'ada' })
  const { version } = before.json()
  const answer = await server.ask('PATCH', `/api/v2/drafts/${id}`, {
    as: 'ada',
    version,
    body: changes,
  })
  expect(answer.statusCode, answer.body).toBe(200)
}

const stored = async (server: TestServer, { id }: Made) =>
  (await server.ask('GET', `/api/v2/drafts/${id}`, { as: 'ada' })).json()
