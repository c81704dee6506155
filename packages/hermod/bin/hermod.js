#!/usr/bin/env node
// The bin is a file of its own so that npm can link it before anything is built.
import '../dist/cli/main.js'
