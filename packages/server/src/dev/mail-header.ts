/** One header of a message as people read it: unfolded, with encoded words (RFC 2047) decoded. */
export function headerOf(source: string, name: string): string {
  const [head = ''] = source.split(/\r?\n\r?\n/, 1)
  const lines = head.replace(/\r?\n[ \t]+/g, ' ').split(/\r?\n/)
  const line = lines.find((each) => each.toLowerCase().startsWith(`${name}:`)) ?? ''
  return decodeWords(line.slice(name.length + 1).trim())
}

function decodeWords(text: string): string {
  return text
    .replace(/(\?=)\s+(=\?)/g, '$1$2')
    .replace(/=\?([\w-]+)\?([bq])\?([^?]*)\?=/gi, (whole, charset, kind, body) => {
      const bytes = /b/i.test(kind) ? Buffer.from(body, 'base64') : quoted(body)
      try {
        return new TextDecoder(charset).decode(bytes)
      } catch {
        return whole
      }
    })
}

function quoted(body: string): Buffer {
  const text = body.replaceAll('_', ' ')
  return Buffer.from(
    text.replace(/=([0-9a-f]{2})/gi, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16))),
    'latin1',
  )
}
