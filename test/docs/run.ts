// Runs the sql and sh blocks of a page: sql against the page's database, sh in a scratch folder where
// `hermod` and `npx hermod` are the command line of this repository.

import { execFile } from 'node:child_process'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'
import { rootPath } from '../support/source-tree.ts'
import pg from './stand-in-pg.ts'

export async function runSql(text: string): Promise<void> {
  const client = new pg.Client({ connectionString: process.env.DATABASE_URL })
  await client.connect()
  try {
    await client.query(text)
  } finally {
    await client.end()
  }
}

const main = join(rootPath, 'packages', 'hermod', 'dist', 'cli', 'main.js')
const hermod = `exec '${process.execPath}' '${main}' "$@"\n`
const programs = {
  hermod: `#!/bin/sh\n${hermod}`,
  npx: `#!/bin/sh\n[ "$1" = hermod ] || exit 127\nshift\n${hermod}`,
}

export async function runShell(text: string, fails: boolean): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'hermod-page-'))
  for (const [name, text] of Object.entries(programs)) {
    writeFileSync(join(folder, name), text)
    chmodSync(join(folder, name), 0o755)
  }
  const env = { ...process.env, PATH: `${folder}${delimiter}${process.env.PATH}` }
  try {
    const ran = promisify(execFile)('/bin/sh', ['-e', '-c', text], { cwd: folder, env })
    const failed = await ran.then(
      () => undefined,
      (error: Error) => error,
    )
    if (failed !== undefined && !fails) throw failed
    if (failed === undefined && fails) throw new Error('the block says it fails, but it did not')
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
