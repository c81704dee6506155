// Opens the data directory that a failed test run kept: node scripts/open-cluster.mjs FOLDER
// Prints the address and serves until Ctrl-C. The folder is yours to delete.

import { startPostgres } from '../packages/hermod/dist/embedded/index.js'
import { fail } from './process.mjs'

const dataDir = process.argv[2] ?? fail('Usage: node scripts/open-cluster.mjs FOLDER')
const postgres = await startPostgres({ dataDir })
console.log(`${postgres.url()}   (Ctrl-C stops it)`)
setInterval(() => {}, 60_000)
