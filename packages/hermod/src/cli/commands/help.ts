/** `hermod help [COMMAND]`. */

import { didYouMean } from '../../nearest.ts'
import { version } from '../../version.ts'
import { type Command, usage } from '../command.ts'
import { helpOf, overview } from '../help-text.ts'

/** `all` loads every command; the list of commands gives it, so that help need not know the list. */
export const helpCommand = (all: () => Promise<readonly Command[]>): Command => ({
  name: 'help',
  summary: 'what there is, or how one command works',
  usage: 'hermod help [COMMAND]',
  examples: ['hermod help', 'hermod help dead'],
  async run({ args, terminal }) {
    const commands = await all()
    const [name] = args
    if (name === undefined) {
      terminal.data(overview(commands, version))
      return 0
    }
    const found = commands.find((each) => each.name === name)
    if (found === undefined) {
      const names = commands.map((each) => each.name)
      throw usage(`there is no command ${name}${didYouMean(name, names)}`)
    }
    terminal.data(helpOf(found))
    return 0
  },
})
