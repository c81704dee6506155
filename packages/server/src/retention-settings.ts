/**
 * How long the outbox keeps what, and where it goes before it is removed: a folder or an S3-compatible
 * bucket, or nowhere. What the settings together must be is checked here too.
 */
import { resolve } from 'node:path'
import type { WorkerOptions } from 'hermod'
import { days, type Read, type Setting, setting, text } from './setting.ts'

export type RetentionConfig = NonNullable<WorkerOptions['retention']>

const optionalText = text(0, 4_096)

export const retentionSettings: readonly Setting[] = [
  setting('retention.eventDays', {
    says: 'days that events are kept, once nobody needs them',
    fallback: 7,
    example: '7',
    read: days,
  }),
  setting('retention.attemptDays', {
    says: 'days that attempts are kept: what was sent and when',
    fallback: 7,
    example: '7',
    read: days,
  }),
  setting('retention.deliveryDays', {
    says: 'days that dead letters, unknown outcomes and receipts are kept',
    fallback: 30,
    example: '30',
    read: days,
  }),
  setting('retention.keyDays', {
    says: 'days that idempotency keys are kept',
    fallback: 7,
    example: '7',
    read: days,
  }),
  setting('archive.folder', {
    says: 'where events and dead letters are written before they go; empty = nowhere, or the bucket',
    fallback: '',
    example: '/var/lib/hermod/archive',
    read: optionalText,
  }),
  setting('archive.endpoint', {
    says: 'the same, to an S3-compatible bucket: its address',
    fallback: '',
    example: 'https://s3.eu-central-1.amazonaws.com',
    read: address,
  }),
  setting('archive.bucket', { says: 'name of the bucket', fallback: '', example: 'archive', read: optionalText }),
  setting('archive.region', {
    says: 'region of the bucket',
    fallback: 'us-east-1',
    example: 'eu-central-1',
    read: text(1, 100),
  }),
  setting('archive.accessKeyId', { says: 'key of the bucket', fallback: '', example: 'AKIA…', read: optionalText }),
  setting('archive.secretAccessKey', {
    says: 'secret of that key',
    masked: true as const,
    fallback: '',
    example: 'the secret of the key',
    read: optionalText,
  }),
  setting('archive.prefix', {
    says: 'goes before the names of objects',
    fallback: '',
    example: 'hermod/production/',
    read: optionalText,
  }),
]

const needed = ['endpoint', 'bucket', 'accessKeyId', 'secretAccessKey'] as const

/** What is wrong although each setting alone is right. */
export function archiveProblem(value: (key: string) => unknown): { key: string; says: string } | undefined {
  const given = needed.filter((name) => value(`archive.${name}`))
  if (given.length === 0) return undefined
  if (value('archive.folder')) {
    return { key: 'archive.folder', says: 'and a bucket are both given. Give one of them' }
  }
  const absent = needed.filter((name) => !given.includes(name)).map((name) => `archive.${name}`)
  if (absent.length === 0) return undefined
  return { key: absent[0] as string, says: `is missing. A bucket needs ${absent.join(' and ')} too` }
}

/** As the engine takes it. */
export function retentionOf(value: (key: string) => unknown, folder: string): RetentionConfig {
  const number = (name: string) => value(`retention.${name}`) as number
  const archive = (name: string) => value(`archive.${name}`) as string
  const s3 = {
    endpoint: archive('endpoint'),
    bucket: archive('bucket'),
    region: archive('region'),
    accessKeyId: archive('accessKeyId'),
    secretAccessKey: archive('secretAccessKey'),
    prefix: archive('prefix'),
  }
  return Object.freeze({
    eventDays: number('eventDays'),
    attemptDays: number('attemptDays'),
    deliveryDays: number('deliveryDays'),
    keyDays: number('keyDays'),
    ...(archive('folder') && { archive: { folder: resolve(folder, archive('folder')) } }),
    ...(s3.bucket && { archive: { s3 } }),
  })
}

function address(given: unknown): Read<string> {
  const fits = typeof given === 'string' && URL.canParse(given) && /^https?:$/.test(new URL(given).protocol)
  return given === '' || fits ? { value: given as string } : { must: 'must be an http or https address' }
}
