// docs/operations/access.md says what is true: its configuration is accepted as it stands there
// (tokens.test.ts sends its request).
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { inspectConfig } from '../../src/read-config.ts'

const page = readFileSync(new URL('../../../../docs/operations/access.md', import.meta.url), 'utf8')
const block = (language: string) => new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``).exec(page)?.[1] ?? ''

it('the issuers are accepted as they stand there', () => {
  const folder = mkdtempSync(join(tmpdir(), 'hermod-access-'))
  try {
    writeFileSync(join(folder, 'hermod.toml'), block('toml'))
    const env = { DATABASE_URL: 'postgres://localhost/x', HERMOD_SECRET: 'x'.repeat(32) }
    const { config, problems } = inspectConfig({ env, folder })
    expect(problems).toEqual([])
    expect(config?.issuers.map(({ name }) => name)).toEqual(['google', 'okta'])
    expect(config?.issuers[1]?.roles).toMatchObject({ platform: 'operator' })
  } finally {
    rmSync(folder, { recursive: true })
  }
})
