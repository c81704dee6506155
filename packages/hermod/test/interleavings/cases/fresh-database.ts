// An empty database beside the case's own, for cases about the migration itself.

import pg from 'pg'
import { onTestFinished } from 'vitest'
import type { Env } from '../../../../../test/support/case.ts'
import { withDatabase } from '../../../../../test/support/template.ts'

type Db = Env['db']

/** Ended with the test. */
export function openPool(db: Db, name: string, user?: string): pg.Pool {
  const url = new URL(withDatabase(db.url, name))
  if (user !== undefined) url.username = user
  const pool = new pg.Pool({ connectionString: url.href, max: 8 })
  pool.on('error', () => {})
  onTestFinished(() => pool.end())
  return pool
}

let made = 0

/** Gone when the test ends. `options` of CREATE DATABASE, such as an encoding. */
export async function freshDatabase(db: Db, options = ''): Promise<string> {
  const name = `${db.name}_fresh_${++made}`
  await db.admin.query(`create database ${name} template template0 ${options}`)
  onTestFinished(async () => {
    await db.admin.query(`drop database ${name} with (force)`)
  })
  return name
}
