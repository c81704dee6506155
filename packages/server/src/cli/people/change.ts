/** `hermod people create`, `link`, `unlink` and `primary`. */
import { type Context, flagOf, textOf, usage } from 'hermod/cli'
import type { Role } from '../../actor.ts'
import * as commands from '../../people/commands.ts'
import { identitiesOf } from '../../people/queries.ts'
import { type IdentityType, identityTypes } from '../../people/rules.ts'
import { type Platform, transaction } from '../../platform.ts'
import { argument, takes, type Verb } from './verb.ts'
import { actorOfShell } from './with-platform.ts'

const roles: readonly Role[] = ['reader', 'editor', 'operator', 'admin']

export const create: Verb = {
  read(context, args) {
    roleOf(context)
    if (textOf(context, 'email') !== undefined) providerOf(context)
    return takes('NAME')(context, args)
  },
  async run(platform, given) {
    const { context } = given
    const value = textOf(context, 'email')
    const id = await transaction(platform, (tx) =>
      commands.createPerson(platform, tx, actorOfShell(given, platform.clock()), {
        displayName: argument(given, 0),
        role: roleOf(context),
        ...(value !== undefined && { identity: identityOf(context, 'email', value) }),
      }),
    )
    return said(context, { id }, `Person ${id} was created.`)
  },
}

export const link: Verb = {
  read(context, args) {
    typeOf(context)
    providerOf(context)
    return takes('ID', 'VALUE')(context, args)
  },
  async run(platform, given) {
    const { context } = given
    const id = argument(given, 0)
    const wanted = identityOf(context, typeOf(context), argument(given, 1))
    const actor = actorOfShell(given, platform.clock())
    const identityId = await transaction(platform, (tx) => commands.linkIdentity(platform, tx, actor, id, wanted))
    const undo = `undo: hermod people unlink ${id} ${identityId}`
    return said(context, { id, identityId }, `Identity ${identityId} is linked; ${undo}`)
  },
}

export const unlink: Verb = {
  read: takes('ID', 'IDENTITY'),
  async run(platform, given) {
    const [personId, identityId] = [argument(given, 0), argument(given, 1)]
    const actor = actorOfShell(given, platform.clock())
    await transaction(platform, (tx) =>
      commands.unlinkIdentity(platform, tx, actor, { personId, identityId, seen: undefined }),
    )
    return left(platform, given.context, personId, `Identity ${identityId} is unlinked.`)
  },
}

export const primary: Verb = {
  read: takes('ID', 'IDENTITY'),
  async run(platform, given) {
    const [personId, identityId] = [argument(given, 0), argument(given, 1)]
    const actor = actorOfShell(given, platform.clock())
    await transaction(platform, (tx) => commands.setPrimary(platform, tx, actor, { personId, identityId }))
    return left(platform, given.context, personId, `Identity ${identityId} is the primary one.`)
  },
}

async function left({ pool }: Platform, context: Context, id: string, says: string) {
  return said(context, { id, identities: await identitiesOf(pool, id) }, says)
}

function said({ terminal }: Context, facts: object, says: string): number {
  if (terminal.json) terminal.document(facts)
  else terminal.data(says)
  return 0
}

function identityOf(context: Context, type: IdentityType, value: string) {
  return { type, provider: providerOf(context), value, verified: flagOf(context, 'verified') }
}

function providerOf(context: Context): string {
  const provider = textOf(context, 'provider')
  if (provider !== undefined && /^[a-z][a-z0-9_-]{0,62}$/.test(provider)) return provider
  throw usage('--provider must name an issuer of the configuration, for example google')
}

function roleOf(context: Context): Role | undefined {
  const given = textOf(context, 'role')
  const role = roles.find((each) => each === given)
  if (given === undefined || role !== undefined) return role
  throw usage(`--role must be one of ${roles.join(', ')}`)
}

function typeOf(context: Context): IdentityType {
  const given = textOf(context, 'type') ?? 'email'
  const type = identityTypes.find((each) => each === given)
  if (type !== undefined) return type
  throw usage(`--type must be one of ${identityTypes.join(', ')}`)
}
