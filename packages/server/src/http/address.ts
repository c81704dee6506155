/** How much of a caller's address may be kept. */
import { isIPv4, isIPv6 } from 'node:net'
import type { Config } from '../config.ts'

/** Truncated: the network without the host, /24 for IPv4 and /48 for IPv6. */
export function keptAddress(ip: string, keep: Config['auditIp']): string | null {
  if (keep === 'none') return null
  const plain = ip.replace(/^::ffff:(?=\d+\.)/, '').replace(/%.*$/, '')
  if (keep === 'full') return isIPv4(plain) || isIPv6(plain) ? plain : null
  if (isIPv4(plain)) return `${plain.split('.').slice(0, 3).join('.')}.0/24`
  return isIPv6(plain) ? `${plain}/48` : null
}
