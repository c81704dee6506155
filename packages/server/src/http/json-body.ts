/**
 * Reads JSON bodies. What no honest client sends is refused before a schema looks at it: deep
 * nesting, very many values, and names that reach into prototypes.
 */
import type { FastifyInstance } from 'fastify'
import { Problem } from '../problems.ts'

const depthMax = 64
/** Imports are read as streams; no other body is that large. */
const valuesMax = 20_000

export function readJson(app: FastifyInstance): void {
  const parse = app.getDefaultJsonParser('error', 'error')
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', { parseAs: 'string' }, (request, text, done) => {
    // Some clients name a media type for a body they do not send.
    if (text === '') return done(null, undefined)
    parse(request, text as string, (error, body) => {
      if (error) return done(new Problem('HMD_JSON_INVALID', error.message, { cause: error }))
      try {
        assertModest(body)
        done(null, body)
      } catch (problem) {
        done(problem as Problem)
      }
    })
  })
}

/** Level by level, so that depth costs no stack. */
export function assertModest(body: unknown): void {
  let level: unknown[] = [body]
  let values = 1
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > depthMax) throw tooMuch(`is nested deeper than ${depthMax} levels`)
    const below: unknown[] = []
    for (const value of level) {
      if (typeof value !== 'object' || value === null) continue
      const inside = Object.values(value)
      values += inside.length
      if (values > valuesMax) throw tooMuch(`holds more than ${valuesMax} values`)
      for (const one of inside) if (typeof one === 'object' && one !== null) below.push(one)
    }
    level = below
  }
}

function tooMuch(detail: string): Problem {
  return new Problem('HMD_JSON_INVALID', `The body ${detail}.`, {
    errors: [{ pointer: '/', detail }],
  })
}
