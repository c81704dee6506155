// How much of an address is kept, and which callers count as one, for every way an address is written.

import { describe, expect, it } from 'vitest'
import { keptAddress, networkOf } from '../../src/http/address.ts'

describe('truncated', () => {
  it.each([
    ['192.0.2.77', '192.0.2.0/24'],
    ['::ffff:192.0.2.77', '192.0.2.0/24'],
    ['::ffff:c000:24d', '192.0.2.0/24'],
    ['0:0:0:0:0:ffff:192.0.2.77', '192.0.2.0/24'],
    ['2001:db8:1234:5678:9abc:def0:1234:5678', '2001:db8:1234::/48'],
    ['2001:DB8:1234:5678::1', '2001:db8:1234::/48'],
    ['2001:0db8:0034::', '2001:db8:34::/48'],
    ['2001:db8::1:2:3:4:5', '2001:db8:0::/48'],
    ['::1', '0:0:0::/48'],
    ['fe80::1%eth0', 'fe80:0:0::/48'],
    ['64:ff9b::192.0.2.77', '64:ff9b:0::/48'],
    ['nonsense', null],
  ])('%s is kept as %s', (ip, kept) => expect(keptAddress(ip, 'truncated')).toBe(kept))
})

it('full and none are what they say', () => {
  expect(keptAddress('2001:db8::1', 'full')).toBe('2001:db8::1')
  expect(keptAddress('::ffff:192.0.2.77', 'full')).toBe('192.0.2.77')
  expect(keptAddress('2001:db8::1', 'none')).toBeNull()
})

it('one IPv6 customer is one caller', () => {
  expect(networkOf('2001:db8:1:2:3:4:5:6')).toBe(networkOf('2001:db8:1:2::9'))
  expect(networkOf('2001:db8:1:3::9')).not.toBe(networkOf('2001:db8:1:2::9'))
  expect(networkOf('192.0.2.1')).not.toBe(networkOf('192.0.2.2'))
  expect(networkOf('::ffff:192.0.2.1')).toBe('192.0.2.1')
})
