// Finds import cycles: groups of files that all reach each other (Tarjan's algorithm).

import { importsOf, type SourceFile, targetOf } from './source-tree.ts'

/** Each group sorted by path; a file that imports itself is a group of one. Types count. */
export function cyclesOf(files: readonly SourceFile[]): string[][] {
  const known = new Set(files.map(({ path }) => path))
  const edges = new Map(
    files.map((file) => {
      const targets = importsOf(file).map(({ from }) => targetOf(file, from))
      return [file.path, targets.filter((target) => target !== undefined && known.has(target)) as string[]]
    }),
  )
  const groups = new Tarjan(edges).groups()
  return groups.filter((group) => group.length > 1 || edges.get(group[0] ?? '')?.includes(group[0] ?? ''))
}

class Tarjan {
  readonly #edges: ReadonlyMap<string, readonly string[]>
  readonly #index = new Map<string, number>()
  readonly #low = new Map<string, number>()
  readonly #stack: string[] = []
  readonly #found: string[][] = []

  constructor(edges: ReadonlyMap<string, readonly string[]>) {
    this.#edges = edges
  }

  groups(): string[][] {
    for (const path of this.#edges.keys()) if (!this.#index.has(path)) this.#visit(path)
    return this.#found
  }

  #visit(path: string): void {
    const index = this.#index.size
    this.#index.set(path, index)
    this.#low.set(path, index)
    this.#stack.push(path)
    for (const target of this.#edges.get(path) ?? []) {
      if (!this.#index.has(target)) this.#visit(target)
      if (this.#stack.includes(target)) this.#lower(path, target)
    }
    if (this.#low.get(path) !== index) return
    this.#found.push(this.#stack.splice(this.#stack.indexOf(path)).sort())
  }

  #lower(path: string, target: string): void {
    this.#low.set(path, Math.min(this.#low.get(path) ?? 0, this.#low.get(target) ?? 0))
  }
}
