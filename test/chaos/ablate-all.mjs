// Every ablation must turn a run red: one after the other, each with up to three seeds.

import { ablations } from './ablations.mjs'
import { say } from './stage.mjs'

const seedsMax = 3

export async function ablateAll(options, play) {
  const green = []
  for (const ablate of Object.keys(ablations)) {
    if (!(await turnsRed(options, play, ablate))) green.push(ablate)
  }
  for (const name of green) say(`✗ ${name} was not noticed`)
  return { ablations: Object.keys(ablations).length, unnoticed: green, ok: green.length === 0 }
}

async function turnsRed(options, play, ablate) {
  for (let n = 0; n < seedsMax; n++) {
    const { ok } = await play({ ...options, ablate, seed: options.seed + n, keep: false })
    say(`${ablate}, seed ${options.seed + n}: ${ok ? 'green' : 'red, as it must be'}`)
    if (!ok) return true
  }
  return false
}
