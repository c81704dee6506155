// Reads the public doors of the packages: which names each entry of `exports` gives out.

import { type SourceFile, targetOf } from './source-tree.ts'

const list = /^export (?<type>type )?\{(?<names>[^}]*)\}/gm
const declaration = /^export (?:abstract )?(?<kind>async function|function|const|class|interface|type) (?<name>\w+)/gm
const everything = /^export (?:type )?\*/m

/** `createOutbox` for a value, `type Outbox` for a type, sorted by name. */
export function publicNames({ path, text }: SourceFile): string[] {
  if (everything.test(text)) throw new Error(`${path} exports *: name what is public`)
  const listed = [...text.matchAll(list)].flatMap(({ groups }) =>
    (groups?.names ?? '')
      .split(',')
      .map((name) => name.trim())
      .filter((name) => name !== '')
      .map((name) => (groups?.type === undefined ? name : `type ${name}`)),
  )
  const declared = [...text.matchAll(declaration)].map(({ groups }) =>
    /interface|type/.test(groups?.kind ?? '') ? `type ${groups?.name}` : `${groups?.name}`,
  )
  const byName = (name: string) => name.replace(/^type /, '').replace(/^.* as /, '')
  return [...listed, ...declared].sort((a, b) => (byName(a) < byName(b) ? -1 : 1))
}

interface Manifest {
  readonly name: string
  readonly exports: Readonly<Record<string, string | { readonly default: string }>>
}

/** `hermod/testing` → the source file behind it. */
export function doorsOf(manifest: SourceFile, sources: readonly SourceFile[]): [string, SourceFile][] {
  const { name, exports } = JSON.parse(manifest.text) as Manifest
  return Object.entries(exports).flatMap(([entry, target]): [string, SourceFile][] => {
    if (typeof target === 'string') return []
    const path = targetOf(manifest, target.default.replace('/dist/', '/src/').replace(/\.js$/, '.ts'))
    const door = sources.find((file) => file.path === path)
    if (door === undefined) throw new Error(`${manifest.path}: no source behind ${entry}`)
    return [[`${name}${entry.slice(1)}`, door]]
  })
}
