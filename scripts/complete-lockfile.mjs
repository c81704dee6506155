// Run after `npm install` changed the lockfile. A package mirror may lack the optional packages of
// other platforms; npm then leaves them out, and `npm ci` refuses such a lockfile everywhere. This
// adds them back: version from the package that asks for it, platform from the name. They carry no
// integrity hash until somebody installs with a complete source.

import { readFileSync, writeFileSync } from 'node:fs'

const file = new URL('../package-lock.json', import.meta.url)
const lock = JSON.parse(readFileSync(file, 'utf8'))

const systems = ['android', 'darwin', 'freebsd', 'linux', 'openharmony', 'win32']
const processors = ['arm64', 'arm', 'x64', 'ia32', 'ppc64', 's390x', 'wasm32', 'riscv64', 'loong64']

function platformOf(name) {
  const words = name.split('/').pop().split('-')
  const os = systems.filter((system) => words.includes(system))
  const cpu = processors.filter((processor) => words.includes(processor))
  const libc = words.includes('musl') ? ['musl'] : words.includes('gnu') ? ['glibc'] : undefined
  return { cpu, ...(libc && { libc }), ...(os.length > 0 && { os }) }
}

const added = []
for (const [path, { optionalDependencies = {}, dev }] of Object.entries(lock.packages)) {
  for (const [name, version] of Object.entries(optionalDependencies)) {
    const key = `node_modules/${name}`
    if (lock.packages[key] || lock.packages[`${path}/${key}`]) continue
    lock.packages[key] = { version, ...(dev && { dev }), optional: true, ...platformOf(name) }
    added.push(`${name}@${version}`)
  }
}
const byPath = ([a], [b]) => (a < b ? -1 : 1)
lock.packages = Object.fromEntries(Object.entries(lock.packages).sort(byPath))
writeFileSync(file, `${JSON.stringify(lock, null, 2)}\n`)
console.log(added.length > 0 ? `added: ${added.join(', ')}` : 'complete')
