/** `hermod people …`: who there is, how they log in, who is whom, and where they came from. */
import { type Command, type Context, didYouMean, usage } from 'hermod/cli'
import { configOptions } from '../config-options.ts'
import type { Verb } from '../people/verb.ts'

const verbs: Readonly<Record<string, () => Promise<Verb>>> = {
  list: async () => (await import('../people/read.ts')).list,
  show: async () => (await import('../people/read.ts')).show,
  create: async () => (await import('../people/change.ts')).create,
  link: async () => (await import('../people/change.ts')).link,
  unlink: async () => (await import('../people/change.ts')).unlink,
  primary: async () => (await import('../people/change.ts')).primary,
  merge: async () => (await import('../people/merge.ts')).merge,
  unmerge: async () => (await import('../people/merge.ts')).unmerge,
  import: async () => (await import('../people/import.ts')).importPeople,
}

export const command: Command = {
  name: 'people',
  summary: 'list, link, merge and import people',
  usage: `hermod people list [BEGINNING] | show ID | create NAME | link ID VALUE | unlink ID IDENTITY
  | primary ID IDENTITY | merge FROM INTO | unmerge MERGE | import`,
  examples: [
    'hermod people list ada',
    'hermod people show 17',
    'hermod people create "Ada Lovelace" --role editor --email ada@example.org --provider google',
    'hermod people link 17 ada.king@example.org --provider google --verified',
    'hermod people merge 23 17 --reason "two accounts, one person" --dry-run',
    'hermod people unmerge 4 --reason "they are two"',
    'hermod people import --table public.users --dry-run',
  ],
  options: {
    config: configOptions.config,
    limit: { type: 'string', value: 'N', says: 'list: at most so many; 50' },
    role: { type: 'string', value: 'ROLE', says: 'create: reader, editor, operator or admin' },
    email: { type: 'string', value: 'ADDRESS', says: 'create: the first address' },
    provider: { type: 'string', value: 'NAME', says: 'create, link: name of the issuer' },
    type: { type: 'string', value: 'TYPE', says: 'link: email (default), oauth_sub or ldap_dn' },
    verified: { type: 'boolean', says: 'create, link: you vouch for the address' },
    reason: { type: 'string', value: 'TEXT', says: 'merge, unmerge: why; kept in the audit trail' },
    'dry-run': { type: 'boolean', says: 'merge, import: count only' },
    table: { type: 'string', value: 'TABLE', says: 'import: the users; public.users' },
    documents: { type: 'string', value: 'TABLE', says: 'import: their documents; documents' },
  },
  notes: [
    'merge moves everything that refers to FROM to INTO, and asks before it does; unmerge undoes it.',
    'import may be run again: a second run changes nothing. It exits 1 when rows were refused.',
  ],
  async run(context) {
    const [verb = 'list', ...args] = context.args
    const load = Object.hasOwn(verbs, verb) ? verbs[verb] : undefined
    if (load === undefined) {
      const meant = didYouMean(verb, Object.keys(verbs))
      throw usage(`people has no ${verb}${meant}`, 'Run hermod people --help.')
    }
    return runVerb(await load(), context, verb, args)
  },
}

async function runVerb(verb: Verb, context: Context, name: string, args: readonly string[]) {
  const given = { context, args: verb.read(context, args), name }
  const { withPlatform } = await import('../people/with-platform.ts')
  return withPlatform(context, (platform) => verb.run(platform, given))
}
