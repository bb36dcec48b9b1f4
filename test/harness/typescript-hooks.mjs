// Hooks of module resolution, on the thread of the module loader or, in a later Node, on the one that imports. Sources are what
// the runner bundled; without it, or where it has not, translated here unless they were before.
import { existsSync, mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { basename, dirname, join, relative } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { root, sourceOf } from '../../scripts/test/sources.mjs'

const require = createRequire(import.meta.url)
const cache = join(root, 'node_modules/.cache/svc-test/js')
const bundle = process.env.SVC_TEST_BUNDLE
/** Names of exports by source, of the sources that the bundle hands out. */
const bundled = bundle === undefined ? {} : JSON.parse(readFileSync(`${bundle}.json`, 'utf8'))
let stopping

/** A `./name.js` in a TypeScript source means the source of that name, as for the compiler; `svc` is the sources. */
export function resolve(specifier, context, next) {
  const source = sourceOf(specifier, context.parentURL)
  if (source !== undefined) return found(pathToFileURL(join(root, source)))
  if (/^\.\.?\/.*\.js$/.test(specifier) && context.parentURL?.endsWith('.ts')) {
    const url = new URL(specifier.replace(/\.js$/, '.ts'), context.parentURL)
    if (existsSync(url)) return found(url)
  }
  return next(specifier, context)
}

const found = url => ({ url: url.href, format: 'module', shortCircuit: true })

export function load(url, context, next) {
  if (!url.startsWith('file:') || !url.endsWith('.ts')) return next(url, context)
  const file = fileURLToPath(url)
  const exported = bundled[relative(root, file)]
  const source = exported === undefined ? translate(file) : handOut(relative(root, file), exported)
  return { format: 'module', source, shortCircuit: true }
}

/** A module with the exports of one of the bundle, which is evaluated once a process whoever imports it. */
function handOut(name, exported) {
  const from = `import { modules } from ${JSON.stringify(pathToFileURL(bundle).href)}\n`
  const named = exported.filter(key => key !== 'default')
  const rest = exported.includes('default') ? '\nexport default module.default\n' : '\n'
  return `${from}const module = await modules[${JSON.stringify(name)}]()\nexport const { ${named.join(', ')} } = module${rest}`
}

function translate(file) {
  const kept = join(cache, `${relative(root, file)}.js`)
  const inTree = !relative(root, file).startsWith('..')
  if (inTree && modified(kept) >= modified(file)) return readFileSync(kept, 'utf8')
  const esbuild = require('esbuild')
  // A process that it keeps for the next source outlives the test file that needed this one.
  clearTimeout(stopping)
  stopping = setTimeout(() => esbuild.stop(), 200).unref()
  const { code } = esbuild.transformSync(readFileSync(file, 'utf8'), {
    format: 'esm',
    platform: 'node',
    target: 'node20',
    sourcemap: 'inline',
    loader: 'ts',
    // Named by its last part alone, for it is loaded under the address of its source.
    sourcefile: basename(file),
  })
  if (inTree) {
    mkdirSync(dirname(kept), { recursive: true })
    // Another process may read it now.
    writeFileSync(`${kept}.${process.pid}`, code)
    renameSync(`${kept}.${process.pid}`, kept)
  }
  return code
}

function modified(file) {
  return statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0
}
