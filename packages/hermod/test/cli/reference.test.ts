// docs/reference/cli.md is made from the commands themselves; `npx vitest run cli/reference -u` renews it.

import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { type CommandOption, commonOptions } from '../../src/cli/command.ts'
import { allCommands } from '../../src/cli/commands.ts'

const page = fileURLToPath(new URL('../../../../docs/reference/cli.md', import.meta.url))

const introduction = `# The command line

\`npx hermod COMMAND\`. Data goes to stdout, words to stderr. Exit codes: 0 done, 1 failed (for \`status\` and \`doctor\`: a
person should act), 2 wrong usage, 130 interrupted. Without a terminal nothing is asked: commands that would ask need
\`--yes\`. The database is \`DATABASE_URL\`, or \`--url\`; passwords are masked in every message.

This page is made from \`packages/hermod/src/cli\`; \`npx vitest run cli/reference -u\` renews it.
`

it('docs/reference/cli.md is what the commands say of themselves', async () => {
  const parts = (await allCommands()).map((command) => {
    const examples = ['```sh', ...command.examples, '```'].join('\n')
    const text = [`## ${command.name}`, capital(command.summary), examples, `\`${command.usage}\``]
    return [...text, table(command.options ?? {}), (command.notes ?? []).map(noted).join('\n\n')]
  })
  const all = [...parts.flat(), '## On every command', table(commonOptions)]
  const text = all.filter((part) => part !== '').join('\n\n')
  await expect(`${introduction}\n${text}\n`).toMatchFileSnapshot(page)
})

function capital(text: string): string {
  const end = text.endsWith('?') ? '' : '.'
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}${end}`
}

/** Indented lines of a note are code. */
function noted(note: string): string {
  return note.replaceAll(/^ {2}(?=\S)/gm, '    ')
}

function table(options: Readonly<Record<string, CommandOption>>): string {
  const rows = Object.entries(options).map(([name, { short, value, says }]) => {
    const flag = `\`${short ? `-${short}, ` : ''}--${name}${value ? ` ${value}` : ''}\``
    return `| ${flag} | ${says} |`
  })
  return rows.length === 0 ? '' : ['| option | meaning |', '|---|---|', ...rows].join('\n')
}
