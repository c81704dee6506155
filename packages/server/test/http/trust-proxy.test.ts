// Whose address counts behind proxies: what the caller writes into X-Forwarded-For never does.

import { describe, expect, it } from 'vitest'
import { readProxies } from '../../src/read-proxies.ts'
import { useServer } from '../support/server.ts'

describe.each([
  ['one proxy', 1],
  ['proxies by their network', ['10.0.0.0/8', 'fd00::/8']],
] as const)('%s', (_, trustProxy) => {
  const server = useServer({ trustProxy, auditIp: 'full' })
  const ipOf = async (remoteAddress: string, forwarded?: string) => {
    const headers = {
      authorization: `Bearer ${await server.token('ada')}`,
      ...(forwarded && { 'x-forwarded-for': forwarded }),
    }
    const payload = { title: 'T', docType: 'RFC', product: 'P' }
    const made = await server.app.inject({ method: 'POST', url: '/api/v2/drafts', remoteAddress, headers, payload })
    const [row] = await server.db.query(
      'select host(ip_address) as ip from hermod.document_modification_log where document_id = $1',
      [made.json().id],
    )
    return row?.ip
  }

  it('is believed about the caller it saw, not about what that caller claims', async () => {
    expect(await ipOf('10.0.0.1', '203.0.113.7')).toBe('203.0.113.7')
    expect(await ipOf('10.0.0.1', '192.0.2.1, 203.0.113.7')).toBe('203.0.113.7')
    expect(await ipOf('10.0.0.1', '127.0.0.1, 10.9.9.9, 203.0.113.7')).toBe('203.0.113.7')
  })
})

describe('somebody outside the network', () => {
  const server = useServer({ trustProxy: ['10.0.0.0/8'], auditIp: 'full' })
  it('is known by their own address', async () => {
    const headers = { authorization: `Bearer ${await server.token('ada')}`, 'x-forwarded-for': '192.0.2.1' }
    const payload = { title: 'T', docType: 'RFC', product: 'P' }
    const asked = { method: 'POST', url: '/api/v2/drafts', remoteAddress: '203.0.113.9', headers, payload } as const
    const made = await server.app.inject(asked)
    const [row] = await server.db.query(
      'select host(ip_address) as ip from hermod.document_modification_log where document_id = $1',
      [made.json().id],
    )
    expect(row?.ip).toBe('203.0.113.9')
  })
})

describe('the setting', () => {
  it.each([
    ['false', false],
    [false, false],
    ['0', false],
    [0, false],
    ['1', 1],
    [2, 2],
    ['10.0.0.0/8, fd00::/8', ['10.0.0.0/8', 'fd00::/8']],
    [
      ['192.0.2.1', '10.0.0.0/8'],
      ['192.0.2.1', '10.0.0.0/8'],
    ],
  ])('%j is read as %j', (given, value) => expect(readProxies(given)).toEqual({ value }))

  it.each(['true', true, 'yes', '11', -1, 1.5, '', 'everybody', '10.0.0.0/33', '0.0.0.0/0', '::/0', [], ['x'], null])(
    '%j is refused: nobody believes everybody',
    (given) => expect(readProxies(given)).toEqual({ must: expect.stringContaining('number of your proxies') }),
  )
})
