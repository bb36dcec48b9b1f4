// A digest of all inputs of dist/. An unchanged digest lets the build be skipped.
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'

const inputs = [
  ...[
    'kernel',
    'plugins',
    'cli',
    'client',
    'testing',
    'schemas',
    'packages',
    'examples',
    'scripts',
    'docs/glossary.md',
  ],
  ...['package.json', 'package-lock.json', 'tsconfig.json', 'tsconfig.build.json'],
]
/** Inputs that the build writes itself. */
const written = new Set(['client/operations.ts', 'client/commands.ts', 'schemas/openapi.json'])

/** File with the digest of the sources of the last finished build. */
export const stampOf = root => join(root, 'dist/.built-from')

/** Digest of all sources and of the Node version, because dist/ contains code compiled for it. */
export function digestOfInputs(root) {
  const hash = createHash('sha256').update(process.version)
  const add = name => {
    const path = join(root, name)
    if (!existsSync(path)) return
    if (statSync(path).isDirectory()) {
      for (const entry of readdirSync(path).sort()) if (entry !== 'node_modules') add(`${name}/${entry}`)
    } else if (!written.has(name)) {
      const contents = readFileSync(path)
      hash.update(`\n${name} ${contents.length}\n`).update(contents)
    }
  }
  for (const name of inputs) add(name)
  return hash.digest('hex')
}

/** Whether dist/ and the generated sources are up to date. */
export function isBuilt(root) {
  const stamp = stampOf(root)
  return (
    existsSync(stamp) &&
    [...written].every(name => existsSync(join(root, name))) &&
    readFileSync(stamp, 'utf8') === digestOfInputs(root)
  )
}
