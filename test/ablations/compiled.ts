// The engine compiled once per test file, file by file, without types. Node loads it as it is: a sabotage then compiles
// only what it patches, and what no patch reaches is loaded once for all of them.

import { mkdir, rm, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { transformWithOxc } from 'vite'
import { engineRoot } from '../support/case.ts'
import { importsOf, readTree, rootPath, type SourceFile, targetOf } from '../support/source-tree.ts'

const engineFolder = 'packages/hermod/'
const sources = readTree().filter(({ path }) => path.startsWith(`${engineFolder}src/`))
const targets = new Map(sources.map((file) => [file.path, importsOf(file).map(({ from }) => targetOf(file, from))]))

/** Files of a patched engine, from `packages/hermod/`: their new text. */
export type Patched = ReadonlyMap<string, string>

export class CompiledEngine {
  readonly root: string

  private constructor(root: string) {
    this.root = root
  }

  /** Inside the repository, so that it finds the installed packages. */
  static async create(name: string): Promise<CompiledEngine> {
    const root = join(rootPath, '.hermod', 'ablations', `${name}-${process.pid}`)
    const made = new CompiledEngine(join(root, 'engine'))
    await linkData(made.root)
    for (const file of sources) await writeCompiled(made.root, file)
    return made
  }

  /** A copy of what the patches reach; the rest are links, which Node follows to what it has loaded already. */
  async patched(name: string, patched: Patched): Promise<string> {
    const root = join(this.root, '..', name)
    await linkData(root)
    const reached = reachedFrom([...patched.keys()].map((file) => `${engineFolder}${file}`))
    for (const { path, text } of sources) {
      const mine = patched.get(path.slice(engineFolder.length))
      if (reached.has(path)) await writeCompiled(root, { path, text: mine ?? text })
      else await linkTo(join(this.root, compiledPath(path)), join(root, compiledPath(path)))
    }
    return root
  }
}

/** These files and whatever imports them, directly or not. */
function reachedFrom(paths: Iterable<string>): Set<string> {
  const found = new Set<string | undefined>(paths)
  for (const path of found) {
    for (const [by, to] of targets) if (to.includes(path)) found.add(by)
  }
  return found as Set<string>
}

async function linkData(root: string): Promise<void> {
  for (const name of ['migrations', 'routines', 'package.json']) await linkTo(join(engineRoot, name), join(root, name))
}

async function linkTo(target: string, path: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true })
  // A test that is tried again finds the link of the first time.
  await rm(path, { force: true })
  await symlink(target, path)
}

async function writeCompiled(root: string, { path, text }: SourceFile): Promise<void> {
  const target = join(root, compiledPath(path))
  const { code } = await transformWithOxc(text, path, {
    typescript: { rewriteImportExtensions: true },
    sourcemap: false,
  })
  await mkdir(dirname(target), { recursive: true })
  await writeFile(target, code)
}

function compiledPath(path: string): string {
  return path.slice(engineFolder.length).replace(/\.ts$/, '.js')
}
