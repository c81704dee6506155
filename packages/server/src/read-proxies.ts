/**
 * Which proxies are believed about the address of a caller: how many of them stand in front, or their networks. Everything that a
 * caller can write into X-Forwarded-For stands left of what the proxies add, and is never believed.
 */
import { isIP } from 'node:net'
import type { Config } from './config.ts'
import type { Read } from './setting.ts'

const hopsMax = 10
const must = `must be false, the number of your proxies in front (1 to ${hopsMax}), or their addresses and networks, separated by commas`

export function readProxies(given: unknown): Read<Config['trustProxy']> {
  const plain = typeof given === 'string' ? given.trim() : given
  if (plain === false || plain === 0 || /^(false|0|no|off)$/i.test(String(plain))) return { value: false }
  const hops = typeof plain === 'string' && /^\d{1,2}$/.test(plain) ? Number(plain) : plain
  if (typeof hops === 'number')
    return Number.isInteger(hops) && hops > 0 && hops <= hopsMax ? { value: hops } : { must }
  const networks = typeof plain === 'string' ? plain.split(',').map((one) => one.trim()) : plain
  if (!Array.isArray(networks) || networks.length === 0 || !networks.every(isNetwork)) return { must }
  return { value: networks as string[] }
}

/** An address, or a network that is not the whole world. */
function isNetwork(text: unknown): boolean {
  if (typeof text !== 'string') return false
  const [address = '', bits, ...more] = text.split('/')
  const version = isIP(address)
  if (version === 0 || more.length > 0) return false
  if (bits === undefined) return true
  return /^[1-9]\d{0,2}$/.test(bits) && Number(bits) <= (version === 4 ? 32 : 128)
}
