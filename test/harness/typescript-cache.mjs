import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Folder of the tree, with a separator at its end. */
export const root = join(dirname(fileURLToPath(import.meta.url)), '../..', '/')
const cache = join(root, 'node_modules/.cache/svc-test/js')
const folders = ['bench', 'cli', 'client', 'examples', 'kernel', 'plugins', 'schemas', 'scripts', 'test', 'testing']

export const transformOptions = {
  format: 'esm',
  platform: 'node',
  target: 'node20',
  sourcemap: 'inline',
  logLevel: 'silent',
}

/** Where the translation of a source of the tree stands. */
export const translationOf = file => join(cache, `${relative(root, file).slice(0, -3)}.js`)

/** Translates the sources that changed since it was done last. What does not parse is left to who imports it. */
export async function translateTree() {
  const { transform } = await import('esbuild')
  const modified = file => statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0
  const stale = folders
    .filter(folder => existsSync(join(root, folder)))
    .flatMap(folder => readdirSync(join(root, folder), { recursive: true }).map(name => join(root, folder, name)))
    .filter(file => /(?<!\.d)\.ts$/.test(file) && !file.includes('/node_modules/'))
    .filter(file => modified(translationOf(file)) < modified(file))
  const translated = stale.map(async file => {
    // Named by its last part alone, for it is loaded under the address of its source.
    const { code } = await transform(readFileSync(file, 'utf8'), {
      ...transformOptions,
      loader: 'ts',
      sourcefile: basename(file),
    })
    mkdirSync(dirname(translationOf(file)), { recursive: true })
    // Another run may read it now.
    writeFileSync(`${translationOf(file)}.${process.pid}`, code)
    renameSync(`${translationOf(file)}.${process.pid}`, translationOf(file))
  })
  await Promise.allSettled(translated)
}
