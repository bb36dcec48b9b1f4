// Bundles the test sources and their imports from this tree into one file for all processes of a run: loading hundreds of modules
// takes longer than most tests. Each module is evaluated on its first import, once per process. Packages stay outside and are
// loaded on demand, because loading all of them takes seconds.
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { build, transform } from 'esbuild'
import { packageEntries, root, sourceOf } from './sources.mjs'

const folder = join(root, 'node_modules/.cache/svc-test')
/** An older bundle belongs to no active run. */
const keptMs = 60 * 60 * 1000

const asserting = join(import.meta.dirname, 'asserting.mjs')

/** Programs started by tests, besides the sources below test/ that are no tests. */
const programs = ['cli/daemon.ts', 'cli/svc.ts', 'cli/watchdog-thread.ts', 'examples/agents/report/agent.ts']

/**
 * Bundles test files, named relative to the root. Resolves to the path of a module that exports `modules`: import functions by
 * source name. `<path>.json` lists the exports of each source that is imported from outside. Rejects with the messages of the
 * compiler.
 */
export async function bundleTests(files) {
  removeOld()
  const path = join(folder, `tests-${process.pid}.mjs`)
  const sources = new Set([...files, ...existing([...packageEntries(), ...programs, ...helpers()])])
  const imports = [...sources].map(name => `  ${JSON.stringify(name)}: () => import(${JSON.stringify(`./${name}`)}),`)
  const stdin = { contents: `export const modules = {\n${imports.join('\n')}\n}\n`, resolveDir: root, loader: 'js' }
  const options = { absWorkingDir: root, bundle: true, platform: 'node', target: 'node20', format: 'esm' }
  const common = { ...options, write: false, metafile: true, logLevel: 'silent', charset: 'utf8' }
  const entryPoints = existing([...packageEntries(), ...programs])
  const [whole, entries] = await Promise.all([
    build({
      ...common,
      stdin,
      banner,
      outfile: path,
      sourcemap: 'linked',
      sourcesContent: false,
      plugins: [inPlace, later],
    }),
    build({ ...common, packages: 'external', entryPoints, outdir: folder, splitting: true, plugins: [inPlace] }),
  ])
  // Dynamic imports add further entry points; only the requested sources count.
  const outputs = Object.values(entries.metafile.outputs).filter(({ entryPoint }) => sources.has(entryPoint))
  const exported = Object.fromEntries(outputs.map(({ entryPoint, exports }) => [entryPoint, exports]))
  for (const name of sources) exported[name] ??= []
  mkdirSync(folder, { recursive: true })
  const texts = whole.outputFiles.map(file => [file.path, file.contents])
  for (const [name, contents] of [...texts, [`${path}.json`, JSON.stringify(exported)]]) {
    writeFileSync(`${name}.tmp`, contents)
    renameSync(`${name}.tmp`, name)
  }
  return path
}

/** Removes a bundle. */
export function removeBundle(path) {
  for (const suffix of ['', '.map', '.json']) rmSync(`${path}${suffix}`, { force: true })
}

/** Removes the bundles of killed runs. */
function removeOld() {
  if (!existsSync(folder)) return
  for (const name of readdirSync(folder).filter(name => name.startsWith('tests-'))) {
    const age = Date.now() - (statSync(join(folder, name), { throwIfNoEntry: false })?.mtimeMs ?? 0)
    if (age > keptMs) rmSync(join(folder, name), { force: true })
  }
}

const existing = names => names.filter(name => existsSync(join(root, name)))

/** Sources below test/ that are no tests; some are programs. The packages of the bench are not ours. */
function helpers() {
  return readdirSync(join(root, 'test'), { recursive: true })
    .filter(name => /(?<!\.test|\.d)\.ts$/.test(name) && !name.includes('node_modules'))
    .map(name => `test/${name}`)
}

/** Gives each bundled source the URL of its own file, resolves `svc` to this tree, and replaces `uvu`. */
const inPlace = {
  name: 'in place',
  setup({ onLoad, onResolve }) {
    onResolve({ filter: /^uvu(\/assert)?$/ }, ({ importer }) =>
      importer === asserting ? undefined : { path: asserting },
    )
    onResolve({ filter: /^svc(\/|$)/ }, ({ path }) => {
      const source = sourceOf(path)
      return source === undefined ? undefined : { path: join(root, source) }
    })
    onLoad({ filter: /\.ts$/ }, async ({ path }) => {
      const text = readFileSync(path, 'utf8')
      if (!text.includes('import.meta')) return { contents: text, loader: 'ts' }
      const place = { url: pathToFileURL(path).href, dirname: dirname(path), filename: path }
      const define = Object.entries(place).map(([name, value]) => [`import.meta.${name}`, JSON.stringify(value)])
      const { code } = await transform(text, {
        loader: 'ts',
        format: 'esm',
        target: 'node20',
        sourcemap: 'inline',
        sourcefile: path,
        define: Object.fromEntries(define),
      })
      return { contents: code, loader: 'js' }
    })
  },
}

/** The `require` that the bundle loads packages with. */
const banner = {
  js: `import { createRequire as requireOf } from 'node:module'\nconst packageOf = requireOf(${JSON.stringify(import.meta.url)})`,
}

/**
 * Loads a package when the first module that imports it is evaluated, as the same instance that Node's import returns. Dynamic
 * imports of ES modules are loaded in the same way, because Node cannot require a module that is just being imported.
 */
const later = {
  name: 'later',
  setup({ onLoad, onResolve }) {
    const fileOf = path => (isBuiltin(path) ? path : fileURLToPath(import.meta.resolve(path)))
    onResolve({ filter: /^[^./]/ }, ({ path, kind }) =>
      kind === 'import-statement' || (kind === 'dynamic-import' && isModule(fileOf(path)))
        ? { path, namespace: 'package' }
        : { path, external: true },
    )
    onLoad({ filter: /./, namespace: 'package' }, async ({ path }) => {
      const found = fileOf(path)
      const it = `packageOf(${JSON.stringify(found)})`
      if (!isModule(found)) return { contents: `module.exports = ${it}` }
      const names = Object.keys(await import(pathToFileURL(found)))
      // Some export names are reserved words.
      const values = names.map((name, n) => `const value${n} = it.${name}\nexport { value${n} as ${name} }`)
      return { contents: [`const it = ${it}`, ...values].join('\n') }
    })
  },
}

/** Whether Node treats a file as an ES module; false for built-in modules. */
function isModule(path) {
  if (!path.endsWith('.js')) return path.endsWith('.mjs')
  for (let folder = dirname(path); ; folder = dirname(folder)) {
    const file = join(folder, 'package.json')
    if (existsSync(file)) return JSON.parse(readFileSync(file, 'utf8')).type === 'module'
  }
}
