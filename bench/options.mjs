/** The flags of `npm run bench --`, with what to say when one is wrong. */
import { parseArgs } from 'node:util'
import { scenarios } from './scenarios.mjs'

export const usage = `npm run bench -- [options]

  --quick          within 5 minutes on 2 cores: smaller sizes, 3 rounds
  --long           like full, and a backlog of 5 million
  --tiny           seconds, for the smoke test: figures mean nothing
  --only <names>   one scenario, or several with commas: ${scenarios.map(({ name }) => name).join(', ')}
  --peers <names>  only these peers; "none" for Hermod and its limits alone
  --before <path>  another checkout, built, as the only peer: the same benchmark before and after a change
  --json           the last line of standard output is one JSON object with all figures
  --no-keep        do not write bench/results`

const known = {
  quick: { type: 'boolean', default: false },
  long: { type: 'boolean', default: false },
  tiny: { type: 'boolean', default: false },
  only: { type: 'string' },
  peers: { type: 'string' },
  before: { type: 'string' },
  json: { type: 'boolean', default: false },
  'no-keep': { type: 'boolean', default: false },
  help: { type: 'boolean', default: false },
}

export function readOptions(args) {
  const { values } = parseArgs({ args, options: known })
  const modes = ['tiny', 'quick', 'long'].filter((mode) => values[mode])
  if (modes.length > 1) throw new Error(`choose one of --${modes.join(' and --')}`)
  const [mode = 'full'] = modes
  return {
    mode,
    chosen: choose(values.only),
    peers: values.peers?.split(',').filter((name) => name !== 'none'),
    before: values.before,
    json: values.json,
    help: values.help,
    keep: !values['no-keep'] && mode !== 'tiny',
  }
}

function choose(only) {
  if (only === undefined) return scenarios.filter(({ apart = false }) => !apart)
  const names = only.split(',')
  const unknown = names.filter((name) => !scenarios.some((scenario) => scenario.name === name))
  if (unknown.length > 0) throw new Error(`no scenario is called ${unknown.join(', ')}`)
  return scenarios.filter(({ name }) => names.includes(name))
}
