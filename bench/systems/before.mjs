/** Another checkout of Hermod, built: `npm run bench -- --before <folder>` compares both in one run. */
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { systemOf } from './hermod.mjs'

const door = join(resolve(process.env.HERMOD_BENCH_BEFORE), 'packages/hermod/dist/index.js')

export default systemOf('before', await import(pathToFileURL(door).href))
