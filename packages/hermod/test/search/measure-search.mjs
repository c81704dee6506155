// Measures the PostgreSQL search engine: `node packages/hermod/test/search/measure-search.mjs [documents]`
// after a build. Fills an index with prose of a natural frequency of words, then prints percentiles.

import { startPostgres } from '../../dist/embedded/index.js'
import { postgresSearch } from '../../dist/sinks/search/postgres.js'

const documents = Number(process.argv[2] ?? 100_000)
const batch = 500

/** The same numbers in every run. */
let state = 42
function random(below) {
  state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
  return Math.floor((state / 4_294_967_296) * below)
}

const common =
  'review budget approval document release plan team product customer policy security design network storage index query server payment invoice contract schedule incident report version change request owner status summary meeting decision risk cost quality process data service project'.split(
    ' ',
  )
const syllables =
  'ba ce di fo gu ha je ki lo mu na pe qui ro su ta ve wi xo ya ze bra cle dri flo gru pla sta tre'.split(' ')

/** 40,000 words; a word's frequency falls with its place, as in natural texts. */
const vocabulary = [...common]
while (vocabulary.length < 40_000) {
  vocabulary.push(Array.from({ length: 2 + random(3) }, () => syllables[random(29)]).join(''))
}
const word = () => vocabulary[Math.floor(vocabulary.length ** (random(1_000_000) / 1_000_000)) - 1]
const words = (count) => Array.from({ length: count }, word).join(' ')

const definition = {
  fields: {
    title: { kind: 'text', weight: 4 },
    summary: { kind: 'text', weight: 2 },
    content: { kind: 'text' },
    docNumber: { kind: 'identifier' },
    docType: { kind: 'keyword', facet: true },
    product: { kind: 'keyword', facet: true },
    status: { kind: 'keyword', facet: true },
    owners: { kind: 'keyword', facet: true },
    tags: { kind: 'keyword', facet: true },
    people: { kind: 'keyword', displayed: false },
    modifiedAt: { kind: 'date' },
  },
}

function made(at) {
  const owner = `person-${random(500)}`
  return {
    title: words(6),
    summary: words(20),
    content: words(250),
    docNumber: `DOC-${at}`,
    docType: ['RFC', 'PRD', 'Memo'][random(3)],
    product: `product-${random(20)}`,
    status: ['WIP', 'In-Review', 'Approved', 'Obsolete'][random(4)],
    owners: [owner],
    tags: [`tag-${random(100)}`],
    people: [owner, `person-${random(500)}`],
    modifiedAt: 1_700_000_000_000 + at * 60_000,
  }
}

function percentiles(times) {
  const sorted = times.toSorted((a, b) => a - b)
  const at = (share) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]
  return { p50: at(0.5), p95: at(0.95), max: sorted.at(-1) }
}

const shown = ({ p50, p95, max }) =>
  `p50 ${p50.toFixed(1).padStart(7)} ms   p95 ${p95.toFixed(1).padStart(7)} ms   max ${max.toFixed(1)} ms`

const person = () => `person-${random(500)}`
const facets = ['docType', 'product', 'status']
const swapped = (text) => `${text.slice(0, 2)}${text[3]}${text[2]}${text.slice(4)}`
const longCommon = common.filter((one) => one.length > 5)
const rare = () => vocabulary[2_000 + random(30_000)]
const usual = () => vocabulary[50 + random(1_000)]
const kinds = {
  'one rare word': () => ({ query: `${rare()} ` }),
  'one usual word': () => ({ query: `${usual()} ` }),
  'the commonest words': () => ({ query: `${common[random(10)]} ` }),
  'two words, facets, highlights': () => ({
    query: `${usual()} ${usual()}`,
    facets,
    highlights: ['title', 'content'],
  }),
  'as you type, 1 letter': () => ({ query: usual().slice(0, 1) }),
  'as you type, 3 letters': () => ({ query: usual().slice(0, 3) }),
  'as you type, second word': () => ({ query: `${usual()} ${usual().slice(0, 3)}` }),
  'swapped letters': () => ({ query: swapped(rare().padEnd(6, 'a')) }),
  'swapped letters, common word': () => ({ query: swapped(longCommon[random(longCommon.length)]) }),
  identifier: () => ({ query: `doc-${random(documents)}` }),
  'a phrase': () => ({ query: `"${common[random(5)]} ${common[random(5)]}"` }),
  'access filter': () => ({ query: usual(), filters: { people: { anyOf: [person(), person()] } } }),
  'everything, newest first': () => ({}),
  'everything with facets': () => ({ facets }),
  'sorted by date in a range': () => ({
    sort: [{ field: 'modifiedAt', direction: 'descending' }],
    filters: {
      status: 'WIP',
      modifiedAt: { from: 1_700_000_000_000 + random(documents) * 60_000 },
    },
  }),
}

const postgres = await startPostgres()
const engine = postgresSearch({ connectionString: postgres.url() })
try {
  await engine.ensureIndex('documents', definition)
  const fillMs = []
  const startedAt = performance.now()
  for (let from = 0; from < documents; from += batch) {
    const size = Math.min(batch, documents - from)
    const part = Array.from({ length: size }, (_, at) => ({
      id: `d${from + at}`,
      version: BigInt(from + at + 1),
      json: JSON.stringify(made(from + at)),
    }))
    const before = performance.now()
    await engine.upsert('documents', part)
    fillMs.push((performance.now() - before) / size)
  }
  const seconds = (performance.now() - startedAt) / 1_000
  console.log(`${documents} documents in ${seconds.toFixed(0)} s; per document ${shown(percentiles(fillMs))}`)
  const all = []
  for (const [name, request] of Object.entries(kinds)) {
    const times = []
    for (let round = 0; round < 40; round++) {
      const asked = request()
      const before = performance.now()
      await engine.search('documents', asked)
      times.push(performance.now() - before)
    }
    all.push(...times)
    console.log(`${name.padEnd(32)} ${shown(percentiles(times))}`)
  }
  console.log(`${'all of them'.padEnd(32)} ${shown(percentiles(all))}`)
  const single = []
  for (let at = 0; at < 200; at++) {
    const json = JSON.stringify(made(at))
    const before = performance.now()
    await engine.upsert('documents', [{ id: `d${random(documents)}`, version: BigInt(documents + at + 1), json }])
    single.push(performance.now() - before)
  }
  console.log(`${'one upsert'.padEnd(32)} ${shown(percentiles(single))}`)
} finally {
  await engine.close()
  await postgres.destroy()
}
