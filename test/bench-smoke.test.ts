// The benchmark at sizes that take seconds: every scenario runs, every figure has its name, and the
// README says what the kept results say. The figures themselves mean nothing here.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { rootPath } from './support/source-tree.ts'

type Figures = Record<string, Record<string, unknown>>

async function node(...args: string[]) {
  const child = spawn(process.execPath, args, { cwd: rootPath, stdio: ['ignore', 'pipe', 'pipe'] })
  let [output, errors] = ['', '']
  child.stdout.on('data', (text) => {
    output += text
  })
  child.stderr.on('data', (text) => {
    errors += text
  })
  const [code] = await once(child, 'close')
  return { code, output, errors }
}

describe('npm run bench -- --tiny --json', () => {
  let figures: Figures

  beforeAll(async () => {
    const { code, output, errors } = await node(...['bench/run.mjs', '--tiny', '--json', '--peers', 'none'])
    expect(code, errors).toBe(0)
    figures = JSON.parse(output.trimEnd().split('\n').at(-1) ?? '')
  }, 120_000)

  it.each([
    ['emit', ['vsPlain', 'vsInsert', 'vsPeers']],
    ['bulk', ['vsRaw']],
    ['drain', ['vsPeers', 'vsScan']],
    ['steady', ['eventsPerSecond', 'vsPeers']],
    ['latency', ['p50Ms', 'p99Ms', 'backlogP99', 'peers']],
    ['growth', ['ratio']],
    ['xmin', ['ratio', 'deadTuples', 'peers']],
    ['fanout', ['perSubscription', 'emitRatio', 'totalRatio']],
    ['subscriptions', ['p50Ratio', 'p99Ratio', 'bytesEach', 'statementsPerSecond']],
    ['workers', ['speedup']],
    ['cost', ['walBytes', 'tableBytes', 'rssMb', 'peers']],
  ])('%s has its figures', (scenario, names) => {
    for (const name of names) {
      const figure = figures[scenario]?.[name]
      expect(['number', 'object'], `${scenario}.${name}`).toContain(typeof figure)
      expect(figure, `${scenario}.${name}`).not.toBeNull()
    }
  })

  it('leaves no dead tuple in event and log under a pinned xmin', () => {
    expect(figures.xmin?.deadTuples).toBe(0)
  })

  it('says with what it was measured', () => {
    expect(figures).toMatchObject({
      mode: 'tiny',
      machine: { cores: expect.any(Number) },
      versions: { node: process.versions.node, postgres: expect.stringMatching(/^\d+/) },
      settings: { hermod: expect.any(Object) },
      sizes: { drain: { events: expect.any(Number) } },
    })
  })
})

describe('bench/run.mjs', () => {
  it('names the scenarios when one is unknown', async () => {
    const { code, errors } = await node('bench/run.mjs', '--only', 'drian')
    expect(code).toBe(2)
    expect(errors).toContain('no scenario is called drian')
    expect(errors).toContain('drain')
  })
})

describe('README', () => {
  it('has the table of the kept results (node bench/table.mjs writes it)', async () => {
    const { code, errors } = await node('bench/table.mjs', '--check')
    expect(code, errors || 'README.md differs: run node bench/table.mjs').toBe(0)
    expect(readFileSync(join(rootPath, 'README.md'), 'utf8')).toContain('<!-- bench -->')
  })
})
