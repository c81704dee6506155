/** The log: JSON lines for machines, readable ones where a person looks. Never a payload or a secret. */
import { hostname } from 'node:os'
import { type Logger, pino } from 'pino'
import type { Config } from './config.ts'
import { serializers } from './log-fields.ts'
import { version } from './version.ts'

export interface LogOptions {
  /** A terminal, usually: `process.stderr.isTTY`. */
  readonly readable?: boolean
  /** Where lines go; stdout when left out. */
  readonly write?: (line: string) => void
}

/** Fields that never appear in a log line, wherever they stand. */
const redacted = ['authorization', 'cookie', 'password', 'secret', 'token', '*.authorization']

export function createLog(level: Config['logLevel'], options: LogOptions = {}): Logger {
  const write = options.write ?? ((line: string) => process.stdout.write(line))
  const stream = { write: options.readable ? (line: string) => write(readable(line)) : write }
  return pino(
    {
      level,
      base: { service: 'hermod-server', version, instance: `${hostname()}:${process.pid}` },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      serializers,
      redact: { paths: redacted, censor: '***' },
    },
    stream,
  )
}

const hidden = new Set(['time', 'level', 'msg', 'code', 'service', 'version', 'instance'])

/** `12:41:07 warn  database.lost  terminating connection  detail=…` */
export function readable(line: string): string {
  const fields = JSON.parse(line) as Record<string, unknown>
  const { time, level, msg, code } = fields
  const rest = Object.entries(fields)
    .filter(([name]) => !hidden.has(name))
    .map(([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`)
  const words = [String(time).slice(11, 19), String(level).padEnd(5), code, msg, ...rest]
  const text = words.filter((word) => word !== undefined && word !== '').join('  ')
  // Data must not control the terminal.
  return `${text.replace(/\p{Cc}+/gu, ' ')}\n`
}
