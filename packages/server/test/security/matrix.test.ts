// Every route × everybody who may ask, against the table beside this file. A route without a line
// fails, and so does a line without a route.

import { readFileSync } from 'node:fs'
import { beforeAll, describe, expect, it } from 'vitest'
import { useServer } from '../support/server.ts'
import { bearer, type Ids, idsOf, newName, type Operation, operationsOf, perform } from './world.ts'

// Roles come from the token alone: in the database everybody is a reader.
const server = useServer({ defaultRole: 'reader' })
const lines = readFileSync(new URL('matrix.txt', import.meta.url), 'utf8')
  .split('\n')
  .filter((line) => line !== '' && !line.startsWith('#'))
  .map((line) => line.split(/\s+/))

let operations: Operation[] = []
beforeAll(async () => {
  operations = await operationsOf(server)
})

const nameOf = ({ method, path }: Pick<Operation, 'method' | 'path'>) => `${method} ${path}`
const owners = ['reader', 'editor', 'operator', 'admin'] as const

/** What the door says; behind it any other 4xx is the room's business. */
function cellOf(status: number): string {
  if (status >= 500) return String(status)
  return [401, 403, 404].includes(status) ? String(status) : 'pass'
}

/** nobody, another editor, then the owner of the objects in each role. */
async function rowOf(operation: Operation): Promise<string[]> {
  let owner = await newOwner(operation)
  const row: string[] = []
  const ask = async (authorization?: string) => {
    const { statusCode } = await perform(server, operation, { ids: owner.ids, authorization })
    row.push(cellOf(statusCode))
  }
  await ask()
  await ask(await bearer(server, 'otto', 'editor'))
  for (const role of owners) {
    // What was only read, or refused, is there for the next caller.
    const kept = operation.method === 'GET' || row.at(-1) !== 'pass'
    if (!kept) owner = await newOwner(operation)
    await ask(await bearer(server, owner.name, role))
  }
  return row
}

async function newOwner(operation: Operation): Promise<{ name: string; ids: Ids }> {
  const name = newName()
  return { name, ids: operation.params.length > 0 ? await idsOf(server, operation, name) : {} }
}

describe('who may ask what', () => {
  it('lists exactly the routes there are', () => {
    expect(lines.map(([method, path]) => `${method} ${path}`).sort()).toEqual(operations.map(nameOf).sort())
  })

  it('holds, cell by cell', async () => {
    const found: string[] = []
    for (const operation of operations) {
      found.push([nameOf(operation), ...(await rowOf(operation))].join(' '))
    }
    console.log(`matrix: ${operations.length} routes × ${owners.length + 2} callers`)
    expect(found.sort()).toEqual(lines.map((words) => words.join(' ')).sort())
  })

  it('no route is open to nobody by mistake', () => {
    const open = operations.filter((operation) => operation.open).map(nameOf)
    expect(open).toEqual(['GET /api/v2/about'])
  })
})
