// The engine's demo (examples/demo): what it prints, that nothing is lost over an outage, that it stops
// when told to, resumes what it kept (also after kill -9), and leaves nothing running.

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdtempSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { eventually } from './support/eventually.ts'
import { rootPath } from './support/source-tree.ts'

type Demo = { readonly child: ChildProcess; readonly output: () => string }

function start(...args: string[]): Demo {
  const child = spawn(process.execPath, ['examples/demo/main.mjs', ...args], { cwd: rootPath })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on('data', (text) => {
      output += text
    })
  }
  onTestFinished(() => {
    if (child.exitCode === null) child.kill('SIGKILL')
  })
  return { child, output: () => output }
}

async function exitCode({ child }: Demo): Promise<number | null> {
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  return child.exitCode
}

const flowing = (demo: Demo) =>
  eventually(() => /position [1-9]/.test(demo.output()), { timeoutMs: 20_000, what: 'events' })

const found = (output: string, pattern: RegExp) => pattern.exec(output)?.[1] ?? ''
const portOf = (output: string) => Number(found(output, /127\.0\.0\.1:(\d+)/))

async function answers(port: number): Promise<boolean> {
  const socket = connect({ host: '127.0.0.1', port })
  const result = await Promise.race([
    once(socket, 'connect').then(() => true),
    once(socket, 'error').then(() => false),
  ]).catch(() => false)
  socket.destroy()
  return result
}

const ended = (port: number) => eventually(async () => !(await answers(port)), { what: `port ${port} to be closed` })

describe('the demo of the engine', () => {
  it('shows what flows, survives an outage without dead letters, and leaves nothing', async () => {
    const demo = start('--ephemeral', '--seconds', '3', '--outage', '1', '--rate', '50')
    expect(await exitCode(demo)).toBe(0)
    const output = demo.output()
    expect(output.split('\n')[0]).toMatch(/^Hermod \d+\.\d+\.\d+ {2}starting/)
    expect(output).toMatch(/ready in \d+\.\d s/)
    expect(output).toContain('(will be deleted on exit)')
    expect(output).toContain('search is held: search does not answer')
    expect(output).toContain('search answers again')
    expect(output).toMatch(/in +[1-9]\d*\.\d\/s {2}out +[1-9]\d*\.\d\/s {2}position \d+/)
    expect(output).toMatch(/search ok: \d+ waiting, 0 dead {2}\| {2}mail ok: \d+ waiting, 0 dead/)
    expect(output).toMatch(/stopped in \d+\.\d s: producer, worker, database\n$/)
    await ended(portOf(output))
    const folder = found(output, /Data +(\S+) \(will be deleted/)
    await eventually(() => !existsSync(folder), { what: `${folder} to be deleted` })
  })

  it('keeps its data, also over kill -9, and Ctrl-C ends it within two seconds', async () => {
    const data = mkdtempSync(join(tmpdir(), 'hermod-demo-'))
    // Root hands the database to another account: closed to it, the data would go elsewhere and stay.
    chmodSync(data, 0o755)
    onTestFinished(() => rmSync(data, { recursive: true, force: true }))
    const killed = start('--data', join(data, 'kept'))
    await flowing(killed)
    killed.child.kill('SIGKILL')
    await exitCode(killed)

    const resumed = start('--data', join(data, 'kept'))
    await flowing(resumed)
    const before = performance.now()
    resumed.child.kill('SIGINT')
    expect(await exitCode(resumed)).toBe(130)
    expect(performance.now() - before).toBeLessThan(2_000)
    await ended(portOf(resumed.output()))
    const position = (demo: Demo) => Number(/.*position (\d+)/s.exec(demo.output())?.[1])
    expect(position(resumed)).toBeGreaterThan(position(killed))
  })

  it('says what is wrong with an option', async () => {
    const wrong = start('--rate', 'fast')
    expect(await exitCode(wrong)).toBe(2)
    expect(wrong.output()).toBe('--rate must be a number above 0 and at most 1000 (got fast).\n')
  })
})
