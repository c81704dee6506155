// Telemetry: a listener never disturbs the engine; trace context is checked before it travels.

import { describe, expect, it } from 'vitest'
import { notify, parseTraceparent, traceHeaders } from '../../src/telemetry.ts'

const step = { numbered: 1, durationMs: 2, position: 3n }
const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'

describe('notify', () => {
  it('tells the listener, on itself', () => {
    const heard: unknown[] = []
    const listener = {
      heard,
      step(event: unknown) {
        this.heard.push(event)
      },
    }
    notify(listener, 'step', step)
    expect(heard).toEqual([step])
  })

  it('never throws: no listener, no such method, one that throws, one that rejects', async () => {
    const bad = {
      step: () => {
        throw new Error('x')
      },
      warning: async () => {
        throw new Error('y')
      },
      claim: 7,
    }
    const warning = { code: 'HMD_STANDBY', message: 'a standby' } as const
    expect(() => notify(undefined, 'step', step)).not.toThrow()
    expect(() => notify({}, 'step', step)).not.toThrow()
    expect(() => notify(bad as never, 'step', step)).not.toThrow()
    expect(() => notify(bad as never, 'claim', {} as never)).not.toThrow()
    expect(() => notify(bad as never, 'warning', warning)).not.toThrow()
    await new Promise((resolve) => setImmediate(resolve))
  })
})

describe('traceparent', () => {
  it('is parsed', () => {
    expect(parseTraceparent(traceparent)).toEqual({
      traceId: '4bf92f3577b34da6a3ce929d0e0e4736',
      parentId: '00f067aa0ba902b7',
      sampled: true,
    })
    expect(parseTraceparent(traceparent.replace(/01$/, '00'))?.sampled).toBe(false)
    expect(parseTraceparent(`01${traceparent.slice(2)}-more`)).toBeDefined()
  })

  it('is refused when it breaks the W3C rules', () => {
    const bad = [
      '',
      null,
      undefined,
      'x',
      `ff${traceparent.slice(2)}`,
      `${traceparent}-more`,
      traceparent.toUpperCase(),
      traceparent.replace('4bf92f3577b34da6a3ce929d0e0e4736', '0'.repeat(32)),
      traceparent.replace('00f067aa0ba902b7', '0'.repeat(16)),
      `${traceparent}\n`,
    ]
    for (const value of bad) expect(parseTraceparent(value)).toBeUndefined()
  })

  it('travels with its tracestate, or neither does', () => {
    expect(traceHeaders({ traceparent, tracestate: 'a=1', other: 'x' })).toEqual({
      traceparent,
      tracestate: 'a=1',
    })
    expect(traceHeaders({ traceparent, tracestate: 'a\r\nb' })).toEqual({ traceparent })
    expect(traceHeaders({ tracestate: 'a=1' })).toEqual({})
    expect(traceHeaders({ traceparent: 'x', tracestate: 'a=1' })).toEqual({})
  })
})
