// Reads the repository as text, for tests about its shape: which files there are and what each
// of them imports.

import { readdirSync, readFileSync } from 'node:fs'
import { basename, join, relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'

export const rootPath = fileURLToPath(new URL('../../', import.meta.url))

export type SourceFile = {
  /** From the root, with forward slashes. */
  readonly path: string
  readonly text: string
}

export type Import = { readonly from: string; readonly typeOnly: boolean }

const ignoredFolders = new Set(['node_modules', 'dist', '.git', '.hermod', 'coverage'])
const textFile = /\.(ts|tsx|mjs|js|json|md|sql|yml|yaml|sh|css|html|conf|toml)$|(^|\/)(run|\.npmrc)$/

/** Every text file of the repository (what is installed or built is not ours). */
export function readTree(): SourceFile[] {
  return walk(rootPath)
    .map((path) => relative(rootPath, path).split(sep).join('/'))
    .filter((path) => textFile.test(path))
    .map((path) => ({ path, text: readFileSync(join(rootPath, path), 'utf8') }))
}

function walk(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    if (ignoredFolders.has(entry.name)) return []
    const path = join(folder, entry.name)
    return entry.isDirectory() ? walk(path) : entry.isFile() ? [path] : []
  })
}

const statement = /^(?:import|export)\s(?<clause>[^'";]*?)\bfrom\s+['"](?<from>[^'"]+)['"]/gm
const bare = /^import\s+['"](?<from>[^'"]+)['"]/gm
const dynamic = /\bimport\(\s*['"](?<from>[^'"]+)['"]/g

export function importsOf({ text }: SourceFile): Import[] {
  const found = (pattern: RegExp) =>
    [...text.matchAll(pattern)].map(({ groups }) => ({
      from: groups?.from ?? '',
      typeOnly: groups?.clause?.startsWith('type ') ?? false,
    }))
  return [...found(statement), ...found(bare), ...found(dynamic)]
}

/** The file an import points to, from the root; undefined for packages. */
export function targetOf(file: SourceFile, from: string): string | undefined {
  if (!from.startsWith('.')) return undefined
  return join(file.path, '..', from).split(sep).join('/')
}

export function stem(path: string): string {
  return basename(path).split('.')[0] ?? ''
}
