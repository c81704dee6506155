/** Addresses of callers: how much of one may be kept, and which belong together. */
import { isIPv4, isIPv6 } from 'node:net'
import type { Config } from '../config.ts'

/** Truncated: the network without the host, /24 for IPv4 and /48 for IPv6. */
export function keptAddress(ip: string, keep: Config['auditIp']): string | null {
  if (keep === 'none') return null
  const plain = plainOf(ip)
  if (keep === 'full') return isIPv4(plain) || isIPv6(plain) ? plain : null
  if (isIPv4(plain)) return `${plain.split('.').slice(0, 3).join('.')}.0/24`
  return isIPv6(plain) ? `${groupsOf(plain).slice(0, 3).join(':')}::/48` : null
}

/** Callers that count as one: an IPv4 address, or the /64 that one IPv6 customer has at least. */
export function networkOf(ip: string): string {
  const plain = plainOf(ip)
  return isIPv6(plain) ? `${groupsOf(plain).slice(0, 4).join(':')}::/64` : plain
}

/** Without a zone; an IPv4 address inside an IPv6 one is itself, however it is written. */
function plainOf(ip: string): string {
  const plain = ip.replace(/%.*$/, '')
  if (!isIPv6(plain)) return plain
  const groups = groupsOf(plain)
  const mapped = groups.slice(0, 5).every((group) => group === '0') && groups[5] === 'ffff'
  if (!mapped) return plain
  const [high = 0, low = 0] = groups.slice(6).map((group) => Number.parseInt(group, 16))
  return [high >> 8, high & 255, low >> 8, low & 255].join('.')
}

/** All eight groups, in hexadecimal without leading zeros. */
function groupsOf(ip: string): string[] {
  const [head = '', tail] = ip.split('::')
  const before = partsOf(head)
  if (tail === undefined) return before
  const after = partsOf(tail)
  return [...before, ...Array<string>(8 - before.length - after.length).fill('0'), ...after]
}

/** `a:b` or `a:1.2.3.4`: the last two groups may be written as an IPv4 address. */
function partsOf(text: string): string[] {
  return text
    .split(':')
    .filter((part) => part !== '')
    .flatMap((part) => {
      if (!part.includes('.')) return [Number.parseInt(part, 16).toString(16)]
      const [a = 0, b = 0, c = 0, d = 0] = part.split('.').map(Number)
      return [(a * 256 + b).toString(16), (c * 256 + d).toString(16)]
    })
}
