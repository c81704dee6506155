/** Where and with what a result was measured: commit, machine, versions. */
import { existsSync, readFileSync } from 'node:fs'
import { cpus, platform, release, totalmem } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const read = (path) => (existsSync(path) ? readFileSync(path, 'utf8').trim() : undefined)

/** From the files of the repository, without git; 'unknown' in a tree without one. */
export function commit() {
  try {
    return headOf(join(root, '.git')) ?? 'unknown'
  } catch {
    return 'unknown'
  }
}

function headOf(folder) {
  const head = read(join(folder, 'HEAD'))
  const [, ref] = /^ref: (.+)$/.exec(head ?? '') ?? []
  if (ref === undefined) return head
  const packed = new RegExp(`^([0-9a-f]{40,}) ${ref}$`, 'm').exec(read(join(folder, 'packed-refs')) ?? '')
  return read(join(folder, ref)) ?? packed?.[1]
}

export function machine() {
  const processors = cpus()
  return {
    cpu: processors[0]?.model.trim() ?? 'unknown',
    cores: processors.length,
    memoryGb: Math.round(totalmem() / 1e9),
    system: `${platform()} ${release().split('-')[0]}`,
  }
}
