/**
 * PUT of one object to an S3-compatible bucket, signed with AWS Signature Version 4: the few lines an
 * archive needs, so that the engine needs no client library. Uses path-style URLs.
 */
import { createHash, createHmac } from 'node:crypto'
import { type ClientRequest, request as httpRequest } from 'node:http'
import { request as httpsRequest } from 'node:https'
import type { Readable } from 'node:stream'

export interface S3Target {
  readonly endpoint: string
  readonly bucket: string
  readonly region: string
  readonly accessKeyId: string
  readonly secretAccessKey: string
  /** Prefix of the object's name: `hermod/production/`. */
  readonly prefix?: string | undefined
}

export interface Body {
  readonly sha256: string
  readonly bytes: number
}

const idleMs = 60_000

/** Resolves to the URL of the object; throws unless the store confirmed the whole body. */
export async function putObject(
  target: S3Target,
  name: string,
  content: Readable,
  body: Body,
  now: Date = new Date(),
): Promise<string> {
  const url = objectUrl(target, name)
  const headers = signedHeaders(target, url, body, now)
  const send = url.protocol === 'https:' ? httpsRequest : httpRequest
  const request = send(url, {
    method: 'PUT',
    headers: { ...headers, 'content-length': body.bytes },
  })
  const { status, text } = await answerTo(request, content)
  if (status < 200 || status > 299) {
    throw new Error(`the bucket answered ${status}: ${text.slice(0, 300).replaceAll(/\s+/g, ' ')}`)
  }
  return url.href
}

function objectUrl({ endpoint, bucket, prefix = '' }: S3Target, name: string): URL {
  const path = [bucket, ...`${prefix}${name}`.split('/')].map(encode).join('/')
  return new URL(`${endpoint.replace(/\/+$/, '')}/${path}`)
}

/** S3 wants every byte but the unreserved ones encoded. */
function encode(part: string): string {
  return encodeURIComponent(part).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`)
}

/** Exported for the test server, which computes the signature again from what it received. */
export function signedHeaders(
  { region, accessKeyId, secretAccessKey }: S3Target,
  url: URL,
  { sha256 }: Body,
  now: Date,
): Record<string, string> {
  const time = `${now.toISOString().slice(0, 19).replaceAll(/[-:]/g, '')}Z`
  const day = time.slice(0, 8)
  const headers = { host: url.host, 'x-amz-content-sha256': sha256, 'x-amz-date': time }
  const names = Object.keys(headers).join(';')
  const lines = Object.entries(headers).map(([name, value]) => `${name}:${value}\n`)
  const asked = ['PUT', url.pathname, '', lines.join(''), names, sha256].join('\n')
  const scope = `${day}/${region}/s3/aws4_request`
  const text = ['AWS4-HMAC-SHA256', time, scope, hex(asked)].join('\n')
  const key = [day, region, 's3', 'aws4_request'].reduce<string | Buffer>(hmac, `AWS4${secretAccessKey}`)
  const signature = hmac(key, text).toString('hex')
  const authorization = `AWS4-HMAC-SHA256 Credential=${accessKeyId}/${scope}, SignedHeaders=${names}, Signature=${signature}`
  return { ...headers, authorization }
}

function hmac(key: string | Buffer, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest()
}

function hex(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

function answerTo(request: ClientRequest, content: Readable): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const fail = (error: Error) => {
      content.destroy()
      request.destroy()
      reject(error)
    }
    request.setTimeout(idleMs, () => fail(new Error(`the bucket was silent for ${idleMs} ms`)))
    request.on('error', fail)
    content.on('error', fail)
    request.on('response', (response) => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (chunk: string) => {
        if (text.length < 2_000) text += chunk
      })
      response.on('error', fail)
      response.on('end', () => resolve({ status: response.statusCode ?? 0, text }))
    })
    content.pipe(request)
  })
}
