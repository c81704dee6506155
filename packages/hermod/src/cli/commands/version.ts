/** `hermod version`. */
import { version } from '../../version.ts'
import type { Command } from '../command.ts'

export const command: Command = {
  name: 'version',
  summary: 'the version of hermod and of Node',
  usage: 'hermod version',
  examples: ['hermod version', 'hermod version --json'],
  async run({ terminal }) {
    if (terminal.json) terminal.document({ hermod: version, node: process.versions.node })
    else terminal.data(version)
    return 0
  },
}
