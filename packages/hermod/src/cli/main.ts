#!/usr/bin/env node
/** The bin `hermod`. Exit 0 done, 1 failed, 2 wrong usage, 130 interrupted. */
import { run } from './run.ts'

process.exitCode = await run(process.argv.slice(2))
