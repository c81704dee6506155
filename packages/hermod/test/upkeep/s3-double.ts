// A double of an S3-compatible bucket, not the real thing: a loopback server that accepts PUT,
// computes the SigV4 signature again from what it received, and refuses what does not fit. Written
// from the public documentation of Signature Version 4 (canonical request, string to sign), without
// sharing code with the engine.

import { createHash, createHmac } from 'node:crypto'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'

export const bucket = {
  bucket: 'archive',
  region: 'eu-test-1',
  accessKeyId: 'AKIDTEST',
  secretAccessKey: 'top/secret+key',
  prefix: 'hermod/unit tests/',
}

export type Double = {
  readonly endpoint: string
  readonly objects: Map<string, Buffer>
  /** Answers every request with this status instead. */
  failWith: number | undefined
}

export async function s3Double(): Promise<Double> {
  const double: { -readonly [K in keyof Double]: Double[K] } = {
    endpoint: '',
    objects: new Map(),
    failWith: undefined,
  }
  const server = createServer(async (request, response) => {
    const body = await read(request)
    const problem = double.failWith ? 'told to fail' : problemOf(request, body)
    response.statusCode = problem === undefined ? 200 : (double.failWith ?? 403)
    if (problem === undefined) double.objects.set(decodeURIComponent(request.url ?? ''), body)
    response.end(problem === undefined ? '' : `<Error><Message>${problem}</Message></Error>`)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  double.endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return double
}

async function read(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks)
}

const sha256 = (text: string | Buffer) => createHash('sha256').update(text).digest('hex')
const mac = (key: string | Buffer, text: string) => createHmac('sha256', key).update(text).digest()

function problemOf(request: IncomingMessage, body: Buffer): string | undefined {
  const header = (name: string) => String(request.headers[name] ?? '')
  if (request.method !== 'PUT') return 'MethodNotAllowed'
  if (Number(header('content-length')) !== body.length) return 'IncompleteBody'
  if (header('x-amz-content-sha256') !== sha256(body)) return 'XAmzContentSHA256Mismatch'
  const [, id, day, region, signed = '', signature] =
    /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([^/]+)\/s3\/aws4_request, SignedHeaders=([a-z0-9;-]+), Signature=([0-9a-f]{64})$/.exec(
      header('authorization'),
    ) ?? []
  if (id !== bucket.accessKeyId || region !== bucket.region) return 'InvalidAccessKeyId'
  const time = header('x-amz-date')
  const skewMs = Math.abs(
    Date.now() - Date.parse(time.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, '$1-$2-$3T$4:$5:$6Z')),
  )
  if (!time.startsWith(String(day)) || !(skewMs < 900_000)) return 'RequestTimeTooSkewed'
  const names = signed.split(';')
  if (!names.includes('host') || !names.includes('x-amz-date')) return 'host and date must be signed'
  const headers = names.map((name) => `${name}:${header(name).trim()}\n`).join('')
  const canonical = `PUT\n${request.url}\n\n${headers}\n${signed}\n${sha256(body)}`
  const toSign = `AWS4-HMAC-SHA256\n${time}\n${day}/${region}/s3/aws4_request\n${sha256(canonical)}`
  const key = mac(mac(mac(mac(`AWS4${bucket.secretAccessKey}`, String(day)), region), 's3'), 'aws4_request')
  return mac(key, toSign).toString('hex') === signature ? undefined : 'SignatureDoesNotMatch'
}
