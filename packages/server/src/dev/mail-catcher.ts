/** Takes every mail and sends none: the last 500 stay in memory, to be looked at. */
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { SMTPServer } from 'smtp-server'
import { freePortFrom } from './free-port.ts'
import { headerOf } from './mail-header.ts'
import { ring } from './ring.ts'

export interface CaughtMail {
  readonly id: number
  readonly receivedAt: string
  readonly from: string
  readonly to: readonly string[]
  readonly subject: string
  /** The whole message as it came; cut at 1 MB. */
  readonly source: string
  readonly bytes: number
}

export interface MailCatcher {
  readonly port: number
  list(): readonly CaughtMail[]
  close(): Promise<void>
}

const usualPort = 4425
const mailsMax = 500
const sourceBytesMax = 1_048_576

export async function startMailCatcher(): Promise<MailCatcher> {
  const mails = ring<CaughtMail>(mailsMax)
  const server = new SMTPServer({
    banner: 'Hermod catches mail',
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    disableReverseLookup: true,
    logger: false,
    size: 20 * sourceBytesMax,
    onAuth: (_auth, _session, done) => done(null, { user: 'anybody' }),
    onData: (stream, { envelope }, done) => {
      const chunks: Buffer[] = []
      let bytes = 0
      stream.on('data', (chunk: Buffer) => {
        if (bytes < sourceBytesMax) chunks.push(chunk)
        bytes += chunk.length
      })
      stream.on('end', () => {
        const source = Buffer.concat(chunks).subarray(0, sourceBytesMax).toString('utf8')
        mails.add((id) => ({
          id,
          receivedAt: new Date().toISOString(),
          source,
          bytes,
          from: envelope.mailFrom === false ? '' : envelope.mailFrom.address,
          to: envelope.rcptTo.map(({ address }) => address),
          subject: headerOf(source, 'subject'),
        }))
        done()
      })
    },
  })
  // A client that hangs up in the middle is its own problem.
  server.on('error', () => {})
  const listening = server.listen(await freePortFrom(usualPort), '127.0.0.1')
  if (!listening.listening) await once(listening, 'listening')
  return {
    port: (listening.address() as AddressInfo).port,
    list: mails.list,
    close: () => new Promise((resolve) => server.close(() => resolve())),
  }
}
