// On the thread of the module loader. A source that is newer than its translation, or has none, is translated here.
import { existsSync, readFileSync, statSync } from 'node:fs'
import { basename } from 'node:path'
import { fileURLToPath } from 'node:url'
import { root, transformOptions, translationOf } from './typescript-cache.mjs'

/** A `./name.js` in a TypeScript source means the source of that name, as for the compiler. */
export async function resolve(specifier, context, next) {
  if (/^\.\.?\/.*\.js$/.test(specifier) && context.parentURL?.endsWith('.ts')) {
    const url = new URL(specifier.replace(/\.js$/, '.ts'), context.parentURL)
    if (existsSync(url)) return { url: url.href, format: 'module', shortCircuit: true }
  }
  return next(specifier, context)
}

export async function load(url, context, next) {
  if (!url.startsWith('file:') || !url.endsWith('.ts')) return next(url, context)
  return { format: 'module', source: await translate(fileURLToPath(url)), shortCircuit: true }
}

async function translate(file) {
  const ready = file.startsWith(root) ? translationOf(file) : undefined
  if (ready !== undefined && modified(ready) >= modified(file)) return readFileSync(ready)
  const { transform } = await import('esbuild')
  const { code } = await transform(readFileSync(file, 'utf8'), {
    ...transformOptions,
    loader: 'ts',
    sourcefile: basename(file),
  })
  return code
}

function modified(file) {
  return statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? Number.NEGATIVE_INFINITY
}
