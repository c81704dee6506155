// Runs every example, or those named: node examples/clients/run.mjs [library …]
// Needs nothing installed: PostgreSQL comes from npm, unless DATABASE_URL names a server on which
// databases may be created.

import { readFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { prepare } from './prepare.mjs'

/** The file of each example, and the package whose version it shows. */
const examples = {
  pg: 'pg',
  'postgres-js': 'postgres',
  kysely: 'kysely',
  'kysely-0.29': 'kysely-0.29',
  drizzle: 'drizzle-orm',
  knex: 'knex',
  typeorm: 'typeorm',
  prisma: 'prisma',
}
const nodeNeeded = { 'kysely-0.29': 22 }
const limitMs = 60_000

const count = { passed: 0, failed: 0, skipped: 0 }
const wanted = process.argv.slice(2)
const unknown = wanted.filter((name) => !Object.hasOwn(examples, name))
if (unknown.length > 0) {
  console.error(`No example "${unknown[0]}". Known: ${Object.keys(examples).join(', ')}.`)
  process.exit(2)
}

prepare()
const { openShop, tell } = await import('./story.js')
const postgres = process.env.DATABASE_URL ? undefined : await startPostgres()
try {
  const shop = await openShop(process.env.DATABASE_URL ?? postgres.url())
  for (const name of wanted.length > 0 ? wanted : Object.keys(examples)) await show(shop, name)
  await shop.close().catch((error) => failed('to close everything', error))
} finally {
  await postgres?.destroy()
}
console.log(`${count.passed} passed, ${count.failed} failed, ${count.skipped} skipped`)
process.exit(count.failed === 0 ? 0 : 1)

async function startPostgres() {
  const embedded = await import('hermod/embedded')
  return embedded.startPostgres()
}

async function show(shop, name) {
  const title = `${name.replace(/-0\.29$/, '')} ${versionOf(examples[name])}`
  const major = Number.parseInt(process.versions.node, 10)
  if (major < nodeNeeded[name]) {
    count.skipped++
    console.log(`skip ${title} needs Node ${nodeNeeded[name]}, this is ${process.versions.node}`)
    return
  }
  try {
    const told = tell(shop, name, await import(`./${name}.js`))
    console.log(`ok ${title} ${await Promise.race([told, limit()])}`)
    count.passed++
  } catch (error) {
    failed(title, error)
  }
}

/** A library that waits for ever must not stop the others. */
async function limit() {
  await pause(limitMs, undefined, { ref: false })
  throw new Error(`not finished after ${limitMs} ms`)
}

function failed(what, error) {
  count.failed++
  console.log(`FAILED ${what}`)
  console.error(error)
}

function versionOf(name) {
  const file = new URL(`node_modules/${name}/package.json`, import.meta.url)
  return JSON.parse(readFileSync(file, 'utf8')).version
}
