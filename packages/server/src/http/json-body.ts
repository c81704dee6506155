/** Reads JSON bodies; names that reach into prototypes, and what is too much, are refused before a schema looks at it. */
import type { FastifyInstance } from 'fastify'
import { numberTooLarge, tooMuchIn } from '../json-bounds.ts'
import { Problem } from '../problems.ts'

/** In longer bodies others get a turn between two looks at the text. */
const longText = 262_144

export function readJson(app: FastifyInstance): void {
  const parse = app.getDefaultJsonParser('error', 'error')
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', { parseAs: 'string' }, (request, text, done) => {
    // Some clients name a media type for a body they do not send.
    if (text === '') return done(null, undefined)
    const next = text.length > longText ? setImmediate : (work: () => void) => work()
    const tooMuch = tooMuchIn(text as string)
    if (tooMuch !== undefined) return done(refused('/', tooMuch))
    next(() =>
      parse(request, text as string, (error, body) => {
        if (error) return done(new Problem('HMD_JSON_INVALID', error.message, { cause: error }))
        const pointer = numberTooLarge(body)
        if (pointer !== undefined) return done(refused(pointer, 'is a number that is too large'))
        next(() => done(null, body))
      }),
    )
  })
}

function refused(pointer: string, detail: string): Problem {
  const where = pointer === '/' ? 'The body' : pointer
  return new Problem('HMD_JSON_INVALID', `${where} ${detail}.`, { errors: [{ pointer, detail }] })
}
