import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** A folder that looks like this project to its scripts, with the files that a test puts there. */
export interface ScratchTree {
  readonly path: string
  write(files: Readonly<Record<string, string>>): void
  remove(): void
}

export function scratchTree(): ScratchTree {
  const path = mkdtempSync(join(tmpdir(), 'svc-scripts-'))
  for (const name of [
    'scripts/build.mjs',
    'scripts/build-console.mjs',
    'scripts/build-inputs.mjs',
    'scripts/prepare.mjs',
    'scripts/test.mjs',
    'scripts/plugin-folders.mjs',
    'scripts/test',
    'tsconfig.json',
    'tsconfig.build.json',
  ])
    cpSync(join(root, name), join(path, name), { recursive: true })
  mkdirSync(join(path, 'node_modules'))
  for (const name of ['uvu', 'tsx', 'esbuild', 'typescript', '@types'])
    symlinkSync(join(root, 'node_modules', name), join(path, 'node_modules', name))
  const write = (files: Readonly<Record<string, string>>) => {
    for (const [name, text] of Object.entries(files)) {
      mkdirSync(dirname(join(path, name)), { recursive: true })
      writeFileSync(join(path, name), text)
    }
  }
  write({ 'package.json': '{ "name": "scratch", "type": "module" }\n' })
  return { path, write, remove: () => rmSync(path, { recursive: true, force: true }) }
}
