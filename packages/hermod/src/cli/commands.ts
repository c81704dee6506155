/**
 * The list of commands. Each lives in its own file and is loaded when it is called; where the server
 * is installed, its commands stand beside these.
 */
import type { Command } from './command.ts'
import { serverPart } from './server-part.ts'

const own: Readonly<Record<string, () => Promise<{ readonly command: Command }>>> = {
  migrate: () => import('./commands/migrate.ts'),
  work: () => import('./commands/work.ts'),
  status: () => import('./commands/status.ts'),
  doctor: () => import('./commands/doctor.ts'),
  rebase: () => import('./commands/rebase.ts'),
  dead: () => import('./commands/dead.ts'),
  replay: () => import('./commands/replay.ts'),
  journeys: () => import('./commands/journeys.ts'),
  rebuild: () => import('./commands/rebuild.ts'),
  verify: () => import('./commands/verify.ts'),
  backfill: () => import('./commands/backfill.ts'),
  help: async () => ({ command: (await import('./commands/help.ts')).helpCommand(allCommands) }),
  version: () => import('./commands/version.ts'),
}

export async function loadCommand(name: string): Promise<Command | undefined> {
  const load = Object.hasOwn(own, name) ? own[name] : undefined
  if (load !== undefined) return (await load()).command
  return (await serverCommands()).find((command) => command.name === name)
}

export async function commandNames(): Promise<string[]> {
  return [...Object.keys(own), ...(await serverCommands()).map(({ name }) => name)]
}

export async function allCommands(): Promise<Command[]> {
  const mine = await Promise.all(Object.values(own).map(async (load) => (await load()).command))
  return [...mine, ...(await serverCommands())]
}

async function serverCommands(): Promise<readonly Command[]> {
  return (await serverPart())?.commands ?? []
}
