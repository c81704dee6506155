// `hermod doctor` judges the age of events by how long the server's settings keep them.

import { spawnSync } from 'node:child_process'
import { tmpdir } from 'node:os'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { useDatabase } from '../../../../test/support/database.ts'

const db = useDatabase()
const bin = fileURLToPath(new URL('../../../hermod/bin/hermod.js', import.meta.url))

function retention(args: string[], env: Record<string, string>): string {
  const clean = Object.entries(process.env).filter(([name]) => !name.startsWith('HERMOD_'))
  const { stdout } = spawnSync(process.execPath, [bin, 'doctor', '--json', ...args], {
    cwd: tmpdir(),
    env: { ...Object.fromEntries(clean), DATABASE_URL: db.url, ...env },
    encoding: 'utf8',
  })
  const { checks } = JSON.parse(stdout) as { checks: { name: string; level: string }[] }
  return checks.find(({ name }) => name === 'retention')?.level ?? stdout
}

it('follows the settings, and what the command line says', { timeout: 60_000 }, async () => {
  await db.query(`insert into outbox.event (bytes, type, aggregate_type, aggregate_id, payload, created_at)
    values (2, 'a.b', 'a', 'x', '{}', now() - interval '20 days')`)
  expect(retention([], {}), 'kept for 7 days').toBe('warn')
  expect(retention([], { HERMOD_RETENTION_EVENT_DAYS: '30' }), 'kept for 30 days').toBe('ok')
  expect(retention(['--event-days', '10'], { HERMOD_RETENTION_EVENT_DAYS: '30' }), 'the command line wins').toBe('warn')
})
