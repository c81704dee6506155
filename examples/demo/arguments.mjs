// What may be said to the demo: read once, refused with a sentence when it makes no sense.

import { parseArgs } from 'node:util'

const help = `node examples/demo/main.mjs [options]

  --data DIR     keep the data in DIR (default ./.hermod/engine)
  --ephemeral    keep nothing: a temporary folder, deleted on exit
  --reset        delete what was kept first
  --rate N       transactions per second (default 5)
  --seconds N    end after N seconds
  --outage N     the search destination is away for the first N seconds
  --help         this text`

const options = {
  data: { type: 'string' },
  ephemeral: { type: 'boolean' },
  reset: { type: 'boolean' },
  rate: { type: 'string' },
  seconds: { type: 'string' },
  outage: { type: 'string' },
  help: { type: 'boolean' },
}

/** Ends the process with the help, or with what is wrong. */
export function readArguments(args) {
  const given = parse(args)
  if (given.help) end(help, 0)
  if (given.ephemeral && (given.data || given.reset)) {
    end('--ephemeral keeps nothing: it goes with neither --data nor --reset.', 2)
  }
  return {
    data: given.data ?? '.hermod/engine',
    ephemeral: given.ephemeral ?? false,
    reset: given.reset ?? false,
    rate: number('rate', given.rate ?? '5', 1_000),
    seconds: given.seconds === undefined ? undefined : number('seconds', given.seconds, 86_400),
    outage: given.outage === undefined ? 0 : number('outage', given.outage, 86_400),
  }
}

function parse(args) {
  try {
    return parseArgs({ args, options, strict: true }).values
  } catch (error) {
    return end(`${error.message}\n\n${help}`, 2)
  }
}

function number(name, text, max) {
  const value = Number(text)
  if (text.trim() !== '' && value > 0 && value <= max) return value
  return end(`--${name} must be a number above 0 and at most ${max} (got ${text}).`, 2)
}

function end(text, code) {
  const out = code === 0 ? process.stdout : process.stderr
  out.write(`${text}\n`)
  process.exit(code)
}
