// `npm start` as a newcomer meets it, in a folder of its own: the page, the lines to try, a kill -9 of
// everything, a second start, and Ctrl-C. Real processes of the built packages.

import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { request } from 'node:http'
import { type AddressInfo, connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { eventually } from '../../../../test/support/eventually.ts'

const bin = fileURLToPath(new URL('../../../hermod/bin/hermod.js', import.meta.url))
const curlFound = spawnSync('curl', ['--version']).status === 0
let folder: string

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'hermod-start-'))
  // As a person's folder is: root hands the database to an account that must be able to enter.
  chmodSync(folder, 0o755)
  return () => rmSync(folder, { recursive: true, force: true })
})

interface Started {
  readonly child: ChildProcess
  readonly output: () => string
  readonly url: () => string
}

async function start(...args: string[]): Promise<Started> {
  const { INIT_CWD: _, DATABASE_URL: __, ...env } = process.env
  const child = spawn(process.execPath, [bin, 'dev', ...args], { cwd: folder, env })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on('data', (text) => {
      output += text
    })
  }
  onTestFinished(() => {
    if (child.exitCode === null) child.kill('SIGKILL')
  })
  const one = { child, output: () => output, url: () => found(output, /Page +(\S+)/) }
  await eventually(
    () => {
      if (child.exitCode !== null) throw new Error(`ended: ${output}`)
      return output.includes('Stop   Ctrl-C')
    },
    { timeoutMs: 40_000, everyMs: 20, what: 'npm start to be ready' },
  )
  return one
}

const found = (text: string, pattern: RegExp) => pattern.exec(text)?.[1] ?? ''
const postmaster = () => Number.parseInt(readFileSync(join(folder, '.hermod/postgres/postmaster.pid'), 'utf8'), 10)

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

/** Exactly what a person would paste. */
async function paste(line: string) {
  const { stdout } = await promisify(execFile)('sh', ['-c', line], { cwd: folder })
  return JSON.parse(stdout)
}

const linesToTry = ({ output }: Started) => output().match(/curl -s .*/g) ?? []

async function exit({ child }: Started, signal: NodeJS.Signals): Promise<number | null> {
  child.kill(signal)
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  return child.exitCode
}

async function occupied(): Promise<number> {
  const server = createServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  return (server.address() as AddressInfo).port
}

/** One message, in the order of RFC 5321; the catcher answers every line. */
async function sendMail(port: number, message: string): Promise<void> {
  const socket = connect({ host: '127.0.0.1', port })
  const answers = createInterface({ input: socket })[Symbol.asyncIterator]()
  const lines = ['HELO test', 'MAIL FROM:<a@example.org>', 'RCPT TO:<b@example.org>', 'DATA']
  await answers.next()
  for (const line of [...lines, `${message}\r\n.`]) {
    socket.write(`${line}\r\n`)
    expect((await answers.next()).value).toMatch(/^[23]/)
  }
  socket.destroy()
}

async function statusFor(host: string, url: string): Promise<number | undefined> {
  const asking = request(`${url}/`, { headers: { host } }).end()
  const [answer] = await once(asking, 'response')
  answer.resume()
  return answer.statusCode
}

describe('npm start', { timeout: 120_000 }, () => {
  it.skipIf(!curlFound)(
    'shows a page, its lines work as printed, kill -9 loses nothing, Ctrl-C leaves nothing (needs curl)',
    async () => {
      const taken = await occupied()
      const first = await start('--port', String(taken))
      const { output } = first
      expect(output()).toMatch(/Hermod \d+\.\d+\.\d+ {2}ready in \d+\.\d s/)
      expect(output()).toContain(`(port ${taken} is taken)`)
      expect(first.url()).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/)
      expect(output()).toContain('Data       ./.hermod (kept;')

      const page = await fetch(first.url())
      expect(page.status).toBe(200)
      expect(page.headers.get('content-security-policy')).toContain("script-src 'self'")
      expect(await page.text()).toContain('<title>Hermod</title>')

      const [search = '', write = '', sync = ''] = linesToTry(first)
      const result = await eventually(
        async () => {
          const answer = await paste(search)
          return answer.total >= 3 && answer
        },
        { timeoutMs: 20_000, everyMs: 100, what: 'the demo to be searchable' },
      )
      expect(result.hits[0].document.title).toMatch(/\w/)
      const written = await paste(write)
      expect(written).toMatchObject({ title: 'My first document', status: 'In-Review' })
      expect((await paste(sync)).event).toMatchObject({
        type: expect.stringMatching(/^document\./),
      })

      const server = postmaster()
      expect(server).toBeGreaterThan(1)
      await exit(first, 'SIGKILL')
      process.kill(server, 'SIGKILL')

      const second = await start('--port', String(taken))
      const again = linesToTry(second)[2]?.replace(/documents\/[^/]+/, `documents/${written.id}`)
      await eventually(async () => (await paste(again ?? '')).searchable === true, {
        timeoutMs: 20_000,
        everyMs: 50,
        what: 'what was written before the kill to be found',
      })
      const titles = await paste(`${linesToTry(second)[0]?.replace('q=outbox', 'q=passkeys')}`)
      expect(titles.total, 'the demo is written once').toBe(1)

      const before = performance.now()
      const running = postmaster()
      expect(isAlive(running)).toBe(true)
      expect(await exit(second, 'SIGINT')).toBe(0)
      expect(performance.now() - before).toBeLessThan(3_000)
      expect(second.output()).toMatch(/Stopped in \d+\.\d s/)
      await eventually(() => !isAlive(running), { what: 'the database to be gone' })

      const anew = await start('--port', '0', '--reset', '--no-demo')
      expect(await paste(linesToTry(anew)[0] ?? '')).toMatchObject({ total: 0 })
      expect(existsSync(join(folder, '.hermod/demo.json'))).toBe(false)
      expect(await exit(anew, 'SIGTERM')).toBe(0)
    },
  )

  it('keeps nothing when told so, and catches mail and webhooks', async () => {
    const dev = await start('--ephemeral', '--no-demo', '--port', '0')
    const data = found(dev.output(), /Data +(\S+) \(will be deleted on exit\)/)
    expect(existsSync(data)).toBe(true)
    const hook = await fetch(`${dev.url()}/catcher/hooks/orders?x=1`, {
      method: 'POST',
      body: 'order=7',
      headers: { 'x-signature': 'abc' },
    })
    expect(await hook.json()).toEqual({ caught: 1 })
    const { items: hooks } = await caught(`${dev.url()}/catcher/hooks`)
    expect(hooks[0]).toMatchObject({ path: '/catcher/hooks/orders?x=1', body: 'order=7', bytes: 7 })
    expect(hooks[0].headers['x-signature']).toBe('abc')

    const port = Number(found(dev.output(), /smtp 127\.0\.0\.1:(\d+)/))
    await sendMail(port, 'Subject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\r\n\r\nHello Ada.')
    const { items: mails } = await caught(`${dev.url()}/catcher/mails`)
    expect(mails[0]).toMatchObject({
      from: 'a@example.org',
      to: ['b@example.org'],
      subject: 'Grüße',
    })
    const source = await fetch(`${dev.url()}/catcher/mails/${mails[0].id}`)
    expect(await source.text()).toContain('Hello Ada.')

    expect(await statusFor('localhost', dev.url())).toBe(200)
    expect(await statusFor('evil.example', dev.url())).toBe(403)

    expect(await exit(dev, 'SIGINT')).toBe(0)
    await eventually(() => !existsSync(data), { what: `${data} to be deleted` })
  })

  it('everybody may do what the page says of them: Hedy only reads, Alan writes, Ada makes tokens for machines', async () => {
    const dev = await start('--ephemeral', '--no-demo', '--port', '0')
    const ask = async (person: string, method: string, path: string, body?: object) => {
      const signIn = await fetch(`${dev.url()}/api/v2/dev/sign-in`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ person }),
      })
      const { token } = (await signIn.json()) as { token: string }
      const answer = await fetch(`${dev.url()}/api/v2${path}`, {
        method,
        headers: { authorization: `Bearer ${token}`, ...(body && { 'content-type': 'application/json' }) },
        ...(body && { body: JSON.stringify(body) }),
      })
      return { status: answer.status, body: (await answer.json()) as { role?: string } }
    }
    const roles = { ada: 'admin', grace: 'operator', alan: 'editor', edsger: 'editor', hedy: 'reader' }
    for (const [name, role] of Object.entries(roles)) expect((await ask(name, 'GET', '/me')).body.role, name).toBe(role)
    const document = { title: 'T', docType: 'RFC', product: 'P' }
    expect((await ask('hedy', 'POST', '/documents', document)).status).toBe(403)
    expect((await ask('alan', 'POST', '/documents', document)).status).toBe(201)
    const token = { name: 'robot', scopes: ['audit:read', 'document:write'] }
    expect((await ask('ada', 'POST', '/tokens', token)).status).toBe(201)
    expect((await ask('hedy', 'POST', '/tokens', token)).status).toBe(403)
    expect(await exit(dev, 'SIGINT')).toBe(0)
  })

  it('says what is wrong with an option', async () => {
    const run = promisify(execFile)
    const tries = [
      ['--port', 'x'],
      ['--ephemeral', '--data', 'y'],
      ['--url', 'postgres://x/y'],
    ]
    const ended = await Promise.all(
      tries.map((args) => run(process.execPath, [bin, 'dev', ...args]).catch((error) => error)),
    )
    expect(ended.map(({ code }) => code)).toEqual([2, 2, 2])
    expect(ended[0].stderr).toContain('--port must be a whole number from 0 to 65535 (got "x")')
  })
})

// biome-ignore lint/suspicious/noExplicitAny: whatever the catcher caught
async function caught(url: string): Promise<{ items: any[] }> {
  return (await (await fetch(url)).json()) as never
}
