// A copy of the engine with patches: patched routines are put over those of a database of its own,
// patched TypeScript is loaded from a compiled copy.

import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { copyDatabase, type Env, engineRoot, loadEngine } from '../support/case.ts'
import type { TestDatabase } from '../support/database.ts'
import type { CompiledEngine } from './compiled.ts'
import { applyPatch, type Patch, type Sabotage } from './sabotage.ts'

export async function patchedEnv(server: TestDatabase, compiled: CompiledEngine, sabotage: Sabotage): Promise<Env> {
  const db = await copyDatabase(server, server.name, { force: true })
  const [code, sql] = [new Map<string, string>(), new Map<string, string>()]
  for (const [file, text] of await patchedTexts(sabotage.patches)) {
    if (file.startsWith('src/')) code.set(file, text)
    else if (file.startsWith('routines/')) sql.set(file, text)
    else throw new Error(`${file}: a patch is for routines/ or src/`)
  }
  // Recorded is the hash of the originals, which the engine will compare.
  for (const text of sql.values()) await db.query(text)
  const root = code.size === 0 ? compiled.root : await compiled.patched(sabotage.name.replace(/\W+/g, '-'), code)
  return { db, engine: await loadEngine(root, 'js') }
}

async function patchedTexts(patches: readonly Patch[]): Promise<Map<string, string>> {
  const texts = new Map<string, string>()
  for (const patch of patches) {
    const text = texts.get(patch.file) ?? (await readFile(join(engineRoot, patch.file), 'utf8'))
    texts.set(patch.file, applyPatch(text, patch))
  }
  return texts
}

export function removeCompiled({ root }: CompiledEngine): Promise<void> {
  return rm(join(root, '..'), { recursive: true, force: true })
}
