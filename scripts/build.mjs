// Builds dist/: `node scripts/build.mjs [--code]`. `--code` skips the type check and the declarations.
//
// Entries that do not exist are skipped. Each file is written by temporary file and rename, chunks before their importers. Obsolete
// files are kept for a minute, so that a running daemon can still load its chunks and concurrent builds do not disturb each other.
import { spawn } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { get } from 'node:http'
import { tmpdir } from 'node:os'
import { basename, dirname, join, relative } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { build, transform } from 'esbuild'
import { buildConsole } from './build-console.mjs'
import { digestOfInputs, stampOf } from './build-inputs.mjs'
import { pluginFolders } from './plugin-folders.mjs'

const root = join(dirname(fileURLToPath(import.meta.url)), '..')
const dist = join(root, 'dist')
const staleMs = 60_000
const cache = join(dist, 'cache')
const cacheMs = 20_000
const commands = ['svc.cjs', ...['mcp', 'agent', 'report-agent', 'command-agent'].map(name => `bin/svc-${name}.cjs`)]
/** Programs of dist/bin/, which the daemon adds to the PATH of its child processes, and their entries. */
const launchers = {
  svc: 'front.cjs',
  'svc-mcp': 'bin/svc-mcp.cjs',
  'svc-agent': 'bin/svc-agent.cjs',
  'svc-report-agent': 'bin/svc-report-agent.cjs',
  'svc-command-agent': 'bin/svc-command-agent.cjs',
}

/** Executed entries, one CommonJS file each: loading ES modules doubles Node's start time. */
const programs = {
  daemon: 'cli/daemon.ts',
  'watchdog-thread': 'cli/watchdog-thread.ts',
  'bin/svc-mcp': 'cli/mcp/svc-mcp.ts',
  'bin/compile-cache': 'cli/compile-cache.ts',
}

/** The command line, see `bundleCommandLine`. */
const commandLine = 'cli/svc.ts'

/** Entries that answer simple calls without `svc.cjs`. Their deferred imports are those of `svc.cjs`. */
const front = { front: 'cli/front.ts', words: 'cli/commands/words.ts' }

/** Sources by output name without suffix. */
function entries() {
  const wanted = {
    index: 'kernel/index.ts',
    plugin: 'kernel/plugin.ts',
    platform: 'kernel/platform.ts',
    kit: 'kernel/kit/index.ts',
    plugins: 'plugins/index.ts',
    client: 'client/index.ts',
    testing: 'testing/index.ts',
    'build-data': 'cli/build-data.ts',
    // `svc` and `svc/plugin` for extensions of `apiVersion = 1`.
    'version-one/svc': 'plugins/delivery/extensions/version-one/svc.ts',
    'version-one/plugin': 'plugins/delivery/extensions/version-one/plugin.ts',
  }
  for (const { name, folder, files } of pluginFolders(root)) {
    if (files.includes('api.ts')) wanted[`plugins/${name}`] = `${folder}/api.ts`
    // Loaded only by the command line, which then need not load the plugin.
    if (files.includes('commands.ts')) wanted[`commands/${name}`] = `${folder}/commands.ts`
  }
  for (const name of filesBelow(join(root, 'schemas'))) {
    if (/(?<!\.d|\.test)\.ts$/.test(name)) wanted[`schemas/${name.slice(0, -3)}`] = `schemas/${name}`
  }
  return existing(wanted)
}

function existing(sources) {
  return Object.fromEntries(Object.entries(sources).filter(([, source]) => existsSync(join(root, source))))
}

function filesBelow(folder) {
  if (!existsSync(folder)) return []
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => relative(folder, join(entry.parentPath, entry.name)))
}

/**
 * Agents with their libraries, one file each: they add nothing to the daemon's chunks, and a sandbox that mounts the program's
 * folder contains the whole program.
 */
const agentCode = {
  'bin/svc-agent': 'packages/agent/src/main.ts',
  'bin/svc-report-agent': 'examples/agents/report/agent.ts',
  'bin/svc-command-agent': 'examples/agents/command/agent.ts',
}

/** Extensions shipped with the daemon: one code file each with all its libraries, beside its manifest. */
const packageFolder = join(root, 'packages')
const bundledExtensions = (existsSync(packageFolder) ? readdirSync(packageFolder) : [])
  .filter(name => existsSync(join(packageFolder, name, 'extension.toml')))
  .sort()
const extensionCode = Object.fromEntries(
  bundledExtensions.map(name => [`extensions/${name}/main`, `packages/${name}/src/main.ts`]),
)

/** The bridge kit `svc/bridge`, one file that is copied into new adapters. */
const library = { bridge: 'packages/bridge-kit/src/index.ts' }

/** Code of the daemon, which shares no chunk with other entries. */
const daemonCode = { 'run-daemon': 'cli/daemon/run-daemon.ts' }
const daemonFile = join(dist, 'run-daemon.cjs')
/** The code in the cache, and the file that sets the V8 flags under which it is valid. */
const codeFiles = [daemonFile, join(dist, 'daemon.cjs')]

/**
 * Modules that stay imports: Fastify's schema compilers, which are large and never called, and koffi, which loads a binary that
 * most daemons never need.
 */
const external = ['./run-daemon.js', '@fastify/ajv-compiler', '@fastify/fast-json-stringify-compiler', 'koffi']

/** The SQLite build that the store loads, copied to dist/: the sql.js package contains fourteen other builds, 30 MB in all. */
const sqlite = ['sql-wasm.js', 'sql-wasm.wasm']

/**
 * Patches of Fastify's router: it compiles a function for each of some thousand nodes and routes, which takes a tenth of a start.
 * Prefixes are compared by a call instead, and the other functions are compiled by their first call.
 */
const lazyRouter = {
  'lib/node\\.js': [
    ['const LONG_PREFIX_MIN_LENGTH = 16', 'const LONG_PREFIX_MIN_LENGTH = 2'],
    ['path.indexOf(prefix, i) === i', 'path.startsWith(prefix, i)'],
  ],
  'lib/handler-storage\\.js': [
    [
      "return new Function('NullObject', fnBody.join('\\n'))(NullObject)",
      `let create
       return (...values) => {
         create ??= new Function('NullObject', fnBody.join('\\n'))(NullObject)
         return create(...values)
       }`,
    ],
    [
      "this._getHandlerMatchingConstraints = new Function('derivedConstraints', lines.join('\\n'))",
      `this._getHandlerMatchingConstraints = function (derived) {
         this._getHandlerMatchingConstraints = new Function('derivedConstraints', lines.join('\\n'))
         return this._getHandlerMatchingConstraints(derived)
       }`,
    ],
  ],
}

/** Resolves packages with a CommonJS main file to their ES modules, and sql.js to the copies in dist/. */
const packages = {
  name: 'packages',
  setup({ onLoad, onResolve }) {
    onLoad({ filter: /\/kernel\/store\/engine\.ts$/ }, ({ path }) => ({
      ...withReplaced(path, "'sql.js/dist/", "'#sqlite/"),
      loader: 'ts',
    }))
    for (const [file, texts] of Object.entries(lazyRouter))
      onLoad({ filter: new RegExp(`/find-my-way/${file}$`) }, ({ path }) => ({
        contents: withAllReplaced(path, texts),
      }))
    // In a bundle lodash finds no `module.require` and would fall back to `process.binding`, which Node deprecates.
    onLoad({ filter: /\/lodash\/_nodeUtil\.js$/ }, ({ path }) =>
      withReplaced(path, "freeProcess.binding('util')", "require('util').types"),
    )
    const installed = path => join(root, 'node_modules', path)
    onResolve({ filter: /^jsonc-parser$/ }, () => ({ path: installed('jsonc-parser/lib/esm/main.js') }))
    // Drops unused code of these modules, such as metrics and logs in the tracing packages.
    onResolve({ filter: /^@opentelemetry\/(api|core|otlp|resources|sdk)(-[a-z]+)?$/ }, ({ path }) => ({
      path: installed(`${path}/build/esm/index.js`),
      sideEffects: false,
    }))
  },
}

/** Packages are bundled, because loading their many files takes longer than the rest of a start. */
function bundle(entryPoints, how) {
  return build({
    absWorkingDir: root,
    entryPoints,
    outdir: dist,
    bundle: true,
    platform: 'node',
    target: 'node20',
    plugins: [packages],
    external,
    legalComments: 'inline',
    sourcemap: 'linked',
    // Stack traces need only names and lines; embedded package sources would be a third of dist/.
    sourcesContent: false,
    metafile: true,
    write: false,
    logLevel: 'warning',
    ...how,
  })
}

/** Entries with shared chunks: a module imported by two of them is one instance. CommonJS code needs a `require`. */
const shared = {
  chunkNames: 'chunks/[name]-[hash]',
  splitting: true,
  format: 'esm',
  charset: 'utf8',
  banner: {
    js: "import { createRequire as requireOf } from 'node:module'; const require = requireOf(import.meta.url)",
  },
}

/**
 * In the daemon's file, `import()` is replaced by the function passed to it. Fastify never listens, so its servers for other
 * protocols are not loaded.
 */
const daemonOnly = {
  name: 'daemon only',
  setup({ onLoad, onResolve }) {
    const contents = 'export const importModule = importForeign'
    onLoad({ filter: /\/import-module\.ts$/ }, () => ({ contents }))
    onResolve({ filter: /^node:https?2?$/ }, ({ path, importer }) =>
      path !== 'node:http' && importer.endsWith('/fastify/lib/server.js') ? { path, namespace: 'nothing' } : undefined,
    )
    onLoad({ filter: /./, namespace: 'nothing' }, () => ({ contents: 'module.exports = {}' }))
    // Few daemons use TLS, so Node's modules for it are loaded by the first use of one of their members.
    onResolve({ filter: /^node:(https|tls)$/ }, ({ path }) => ({ path, namespace: 'lazy' }))
    onLoad({ filter: /./, namespace: 'lazy' }, ({ path }) => {
      const members = Object.keys(process.getBuiltinModule(path)).filter(name => name !== 'default')
      return {
        contents: `module.exports = {${members.map(name => `get ${name}() { return loaded().${name} }`)}}
        const loaded = () => require('${path.slice('node:'.length)}')`,
      }
    })
  },
}

/** One self-contained file each. */
const whole = {
  outExtension: { '.js': '.cjs' },
  format: 'cjs',
  define: { 'import.meta.url': 'moduleUrl' },
  banner: { js: "const moduleUrl = require('node:url').pathToFileURL(__filename).href" },
}

/** A CLI call mostly waits for V8 to parse its file, so it is minified. Names are kept for stack traces. */
const short = { minifyWhitespace: true, minifySyntax: true }

/**
 * Patches clipanion for the command line. Its `Cli` module opens standard input when loaded, which takes a tenth of a short call,
 * and DEBUG_CLI=1 would print into the output. Its validation library is loaded only for commands with schemas, and svc has none.
 */
const clipanion = {
  name: 'clipanion',
  setup({ onLoad, onResolve }) {
    onResolve({ filter: /^typanion$/ }, () => ({ path: 'typanion', external: true }))
    onLoad({ filter: /\/clipanion\/lib\/advanced\/Cli\.js$/ }, ({ path }) =>
      withReplaced(path, 'process.stdin', 'undefined'),
    )
    onLoad({ filter: /\/clipanion\/lib\/constants\.js$/ }, ({ path }) =>
      withReplaced(path, 'process.env.DEBUG_CLI === `1`', 'false'),
    )
  },
}

function withReplaced(path, text, other) {
  return { contents: withAllReplaced(path, [[text, other]]) }
}

/** Throws unless each text occurs exactly once: a new version of the package needs another look. */
function withAllReplaced(path, texts) {
  return texts.reduce(
    (contents, [text, other]) => {
      const parts = contents.split(text)
      if (parts.length !== 2) throw new Error(`${path} has ${text} ${parts.length - 1} times, not once`)
      return parts.join(other)
    },
    readFileSync(path, 'utf8'),
  )
}

const nothingLater = {
  name: 'nothing later',
  setup({ onResolve }) {
    onResolve({ filter: /^\./ }, ({ kind, path }) => (kind === 'dynamic-import' ? { path, external: true } : undefined))
    onResolve({ filter: /^\.\/svc\.cjs$/ }, ({ path }) => ({ path, external: true }))
  },
}

/** Deferred modules of the command line that most calls need, and which are therefore part of `svc.cjs`. */
const neededByMost = /\/(client|parse-command|references|run-route)\.js$/

/**
 * The command line in several files, because V8 reads a whole file before it runs it: `svc.cjs` has what most calls need, and its
 * deferred imports load files of dist/cli/. These share modules with each other, and take those of `svc.cjs` from it.
 */
async function bundleCommandLine() {
  const deferred = new Map()
  const all = { ...whole, ...short }
  const main = async shared => {
    const { metafile, outputFiles } = await bundle(existing({ svc: commandLine }), {
      ...all,
      plugins: [mainEntry(shared), deferring(deferred), librariesLater(commandLibraries), packages, clipanion],
      external: [...external, ...libraryFiles],
    })
    const inputs = metafile.outputs['dist/svc.cjs']?.inputs ?? {}
    return { metafile, outputFiles, own: Object.keys(inputs).filter(name => inputs[name].bytesInOutput > 0) }
  }
  const { own } = await main([])
  const shared = new Set()
  const later = await bundle([...deferred.keys()].sort(), {
    ...all,
    banner: {},
    format: 'esm',
    splitting: true,
    entryNames: 'cli/[name]-[hash]',
    chunkNames: 'cli/[name]-[hash]',
    sourcemap: 'inline',
    plugins: [sharing(new Set(own), shared), packages, clipanion],
  })
  for (const [path, { entryPoint }] of Object.entries(later.metafile.outputs))
    if (deferred.has(entryPoint)) deferred.set(entryPoint, relative('dist', path))
  const { metafile, outputFiles } = await main([...shared].sort())
  return {
    metafile: { outputs: { ...later.metafile.outputs, ...metafile.outputs } },
    outputFiles: [...(await Promise.all(later.outputFiles.map(asCommonJs))).flat(), ...outputFiles],
  }
}

/** The entry of `svc.cjs`: runs the command line, and has the modules that its other files need. */
const mainEntry = shared => ({
  name: 'main entry',
  setup({ onLoad, onResolve }) {
    onResolve({ filter: /./ }, ({ kind, path }) => (kind === 'entry-point' ? { path, namespace: 'main' } : undefined))
    onLoad({ filter: /./, namespace: 'main' }, ({ path }) => {
      const modules = shared.map(name => `'svc:${name}': () => require('./${name}')`)
      const contents = `import './${path}'
        const modules = { ${modules} }
        export const requireOf = require => name => (Object.hasOwn(modules, name) ? modules[name]() : require(name))
        export const url = moduleUrl`
      return { contents: shared.length > 0 ? contents : `import './${path}'`, resolveDir: root }
    })
  },
})

/** Notes deferred modules of the command line and loads them from their files. */
const deferring = deferred => ({
  name: 'deferring',
  setup({ onLoad, onResolve, resolve }) {
    onResolve({ filter: /^\.\.?\// }, async ({ path, kind, importer, resolveDir, pluginData }) => {
      if (kind !== 'dynamic-import' || pluginData === deferred || neededByMost.test(path)) return undefined
      const found = await resolve(path, { kind, importer, resolveDir, pluginData: deferred })
      const name = relative(root, found.path)
      if (!deferred.has(name)) deferred.set(name, name)
      return { path: name, namespace: 'deferred' }
    })
    onResolve({ filter: /^deferred:/ }, ({ path }) => ({ path: `./${path.split(':')[1]}`, external: true }))
    onLoad({ filter: /./, namespace: 'deferred' }, ({ path }) => ({
      contents: `module.exports = require('deferred:${deferred.get(path)}')`,
    }))
  },
})

/** Leaves the modules of `svc.cjs` to it, and notes which. */
const sharing = (own, shared) => ({
  name: 'sharing',
  setup({ onResolve, resolve }) {
    onResolve({ filter: /^[^#]/ }, async ({ path, kind, importer, resolveDir, pluginData }) => {
      if (kind === 'entry-point' || pluginData === shared || path.startsWith('node:')) return undefined
      const found = await resolve(path, { kind, importer, resolveDir, pluginData: shared })
      const name = relative(root, found.path)
      if (found.external || !own.has(name)) return undefined
      shared.add(name)
      return { path: `svc:${name}`, external: true }
    })
  },
})

/** A deferred file of the command line as CommonJS, with its source map. */
async function asCommonJs({ path, text }) {
  const name = basename(path)
  // The same length: the source map stays valid.
  const loading = text.replace(/\bimport\((?="(?:\.\/|svc:))/g, '_later(')
  const { code, map } = await transform(loading, {
    ...short,
    platform: 'node',
    target: 'node20',
    format: 'cjs',
    sourcemap: 'external',
    sourcefile: name,
    sourcesContent: false,
    legalComments: 'inline',
    banner: `const { requireOf, url: moduleUrl } = require('../svc.cjs'); require = requireOf(require)
const _later = name => Promise.resolve().then(() => require(name))`,
  })
  const files = { [path]: `${code}//# sourceMappingURL=${name}.map\n`, [`${path}.map`]: map }
  return Object.entries(files).map(([path, text]) => ({ path, contents: Buffer.from(text) }))
}

/**
 * Packages that no start needs, by the files in dist/libraries/ that have them: in the daemon's file, V8 would have to read their
 * source at each start and keep it.
 */
const libraries = {
  mcp: ['client', 'core', 'server', 'server/stdio'].map(name => `@modelcontextprotocol/${name}`),
  nats: ['@nats-io/jetstream', '@nats-io/transport-node'],
  age: ['age-encryption'],
  tar: ['tar'],
  'web-push': ['web-push/src/encryption-helper.js', 'web-push/src/vapid-helper.js'],
  acp: ['@agentclientprotocol/sdk'],
  ws: ['ws'],
  busboy: ['@fastify/busboy'],
  cronstrue: ['cronstrue'],
  inject: ['light-my-request'],
}
/** Those that are one CommonJS value, which their importers take as the default. */
const values = ['@fastify/busboy', 'cronstrue', 'light-my-request']
/** Likewise for the files of the command line. */
const commandLibraries = { jsonc: ['jsonc-parser'] }
const libraryFiles = Object.keys({ ...libraries, ...commandLibraries }).map(name => `./libraries/${name}.cjs`)

/** Each import of such a package loads its file. */
const librariesLater = which => ({
  name: 'libraries later',
  setup({ onLoad, onResolve }) {
    for (const [file, names] of Object.entries(which))
      for (const name of names) {
        onResolve({ filter: new RegExp(`^${name}$`) }, () => ({ path: name, namespace: 'library', pluginData: file }))
      }
    onLoad({ filter: /./, namespace: 'library' }, ({ path, pluginData }) => ({
      contents: `module.exports = require('./libraries/${pluginData}.cjs')['${path}']`,
    }))
  },
})

const libraryEntries = {
  name: 'library entries',
  setup({ onLoad, onResolve }) {
    onResolve({ filter: /^libraries:/ }, ({ path }) => ({ path: path.split(':')[1], namespace: 'libraries' }))
    onLoad({ filter: /./, namespace: 'libraries' }, ({ path }) => ({
      contents: { ...libraries, ...commandLibraries }[path]
        .map(
          (name, i) =>
            `import ${values.includes(name) ? '' : '* as '}_${i} from '${name}'\nexport { _${i} as '${name}' }`,
        )
        .join('\n'),
      resolveDir: root,
    }))
  },
}
const libraryCode = Object.fromEntries(
  Object.keys({ ...libraries, ...commandLibraries }).map(name => [`libraries/${name}`, `libraries:${name}`]),
)

/** Code for `runCached`: a function instead of a module, because V8 caches only scripts. */
const cached = {
  ...whole,
  charset: 'ascii',
  // V8 keeps the whole source in memory, so it is minified. Short lines keep stack positions readable.
  minifyWhitespace: true,
  minifySyntax: true,
  lineLimit: 200,
  plugins: [librariesLater(libraries), packages, daemonOnly],
  external: [...external, ...libraryFiles],
  banner: { js: '(function (require, module, moduleUrl, importForeign) {' },
  footer: { js: '})' },
}

/** Outputs of all bundles: their inputs are what has licences. */
const bundled = {}

async function buildCode() {
  const entryPoints = entries()
  const isData = ([name]) => name.startsWith('schemas/')
  const all = Object.entries(entryPoints)
  // Schemas are plain data without identity. Built apart, they do not split the code of a start into more and smaller chunks.
  const parts = await Promise.all([
    bundle(Object.fromEntries(all.filter(isData)), shared),
    bundle(Object.fromEntries(all.filter(entry => !isData(entry))), shared),
    bundle(existing(programs), { ...whole, ...short, plugins: [packages, clipanion] }),
    bundleCommandLine(),
    bundle(existing(front), {
      ...whole,
      ...short,
      plugins: [nothingLater, librariesLater(commandLibraries), packages],
      external: [...external, ...libraryFiles],
      banner: {},
    }),
    bundle(existing(agentCode), { ...whole, ...short }),
    bundle(existing(extensionCode), {
      ...whole,
      ...short,
      // Node warns if a library looks for the storage of a browser.
      define: { ...whole.define, localStorage: 'undefined' },
      keepNames: true, // some libraries depend on class names
      plugins: [packages],
    }),
    bundle(existing(library), { format: 'esm', sourcemap: false, plugins: [packages] }),
    bundle(existing(daemonCode), cached),
    bundle(existsSync(join(root, daemonCode['run-daemon'])) ? libraryCode : {}, {
      ...whole,
      ...short,
      plugins: [libraryEntries, packages],
    }),
  ])
  const outputs = Object.assign({}, ...parts.map(({ metafile }) => metafile.outputs))
  const outputFiles = parts.flatMap(part => part.outputFiles)
  const isEntry = path => outputs[relative(root, path).replace(/\.map$/, '')]?.entryPoint !== undefined
  const files = outputFiles.map(({ path, contents }) => ({ path, contents: Buffer.from(contents), mode: 0o644 }))
  for (const name of commands) makeExecutable(files, join(dist, name))
  for (const file of files.filter(({ path }) => !isEntry(path))) put(file)
  for (const file of files.filter(({ path }) => isEntry(path))) put(file)
  for (const [name, entry] of Object.entries(launchers))
    if (files.some(({ path }) => path === join(dist, entry))) putLauncher(name, entry)
  putExtensions()
  putSqlite()
  Object.assign(bundled, outputs)
  removeStale(new Set(files.map(({ path }) => path)))
  return Object.keys(entryPoints)
}

function makeExecutable(files, path) {
  const code = files.find(file => file.path === path)
  if (code === undefined) return
  code.mode = 0o755
  if (code.contents.subarray(0, 2).toString() === '#!') return
  code.contents = Buffer.concat([Buffer.from('#!/usr/bin/env node\n'), code.contents])
  const map = files.find(file => file.path === `${path}.map`)
  // The banner adds a line at the top, so the mappings start with one more empty line.
  const json = JSON.parse(map.contents.toString())
  map.contents = Buffer.from(JSON.stringify({ ...json, mappings: `;${json.mappings}` }))
}

/** Node 20 has no compile cache, and looking it up takes time. */
const withCompileCache = also => `if (${also}parseInt(process.versions.node) >= 22) require('./compile-cache.cjs')`

/** The start of `svc`: the smallest file that answers the call. front.cjs also reports that there is no current folder. */
const choice = `const [, , first, second, third] = process.argv
let file = first === 'help' || process.argv.some(word => word === '--help' || word === '-h') ? 'front' : 'svc'
if (first === 'completion' && second === 'words' && third === undefined) file = 'words'
try {
  process.cwd()
} catch {
  file = 'front'
}
${withCompileCache("file === 'svc' && ")}
require('../' + file + '.cjs')`

/** A file instead of a symlink, because Node runs a link's target under the package.json of the target's folder. */
function putLauncher(name, entry) {
  const bin = join(dist, 'bin')
  const code = `#!/usr/bin/env node\n${entry === 'front.cjs' ? choice : `${withCompileCache('')}\nrequire('../${entry}')`}\n`
  put({ path: join(bin, 'package.json'), contents: Buffer.from('{ "type": "commonjs" }\n'), mode: 0o644 })
  put({ path: join(bin, name), contents: Buffer.from(code), mode: 0o755 })
}

/** Copies each extension's manifest and the files that it names, and the Python bridge kit. */
function putExtensions() {
  const python = join(root, 'packages/bridge-kit/python/svc_bridge.py')
  if (existsSync(python)) put({ path: join(dist, 'bridge/svc_bridge.py'), contents: readFileSync(python), mode: 0o644 })
  for (const name of bundledExtensions) {
    const folder = join(root, 'packages', name)
    for (const file of ['extension.toml', 'config.schema.json']) {
      if (!existsSync(join(folder, file))) continue
      put({ path: join(dist, 'extensions', name, file), contents: readFileSync(join(folder, file)), mode: 0o644 })
    }
  }
}

const sqliteFolder = 'node_modules/sql.js/dist'

function putSqlite() {
  for (const name of existsSync(join(root, sqliteFolder)) ? sqlite : [])
    put({ path: join(dist, 'sqlite', name), contents: readFileSync(join(root, sqliteFolder, name)), mode: 0o644 })
}

/** Writes dist/console, which is built after commands.json: its palette lists the commands. Obsolete files are kept for a minute. */
async function putConsole() {
  const folder = join(dist, 'console')
  const { files, outputs } = await buildConsole(root)
  // The page and the list of files are last: what they name is there before.
  for (const { name, contents } of files) put({ path: join(folder, name), contents, mode: 0o644 })
  const names = new Set(files.map(({ name }) => name))
  for (const name of filesBelow(folder)) {
    const path = join(folder, name)
    if (!names.has(name) && Date.now() - statSync(path).mtimeMs > staleMs) rmSync(path, { force: true })
  }
  Object.assign(bundled, outputs)
}

/** Copies the licence of each bundled package. */
function putLicences(outputs) {
  const copied = existsSync(join(root, sqliteFolder)) ? [`${sqliteFolder}/${sqlite[0]}`] : []
  const inputs = [...copied, ...Object.values(outputs).flatMap(output => Object.keys(output.inputs))]
  const folders = new Set(inputs.flatMap(input => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(input)?.[0] ?? []))
  const texts = [...folders].sort().map(folder => {
    const { name, version, license } = JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8'))
    const files = readdirSync(join(root, folder)).filter(file => /^(licen[cs]e|copying|notice)/i.test(file))
    const full = files.map(file => readFileSync(join(root, folder, file), 'utf8').trim())
    return [`${name} ${version}: ${license}`, ...full].join('\n\n')
  })
  put({
    path: join(dist, 'licences.txt'),
    contents: Buffer.from(`${texts.join(`\n\n${'-'.repeat(80)}\n\n`)}\n`),
    mode: 0o644,
  })
}

function put({ path, contents, mode }) {
  if (existsSync(path) && readFileSync(path).equals(contents)) {
    chmodSync(path, mode)
    // The new timestamp tells a concurrent build that the file is still in use.
    utimesSync(path, new Date(), new Date())
    return
  }
  if (codeFiles.includes(path)) rmSync(cache, { recursive: true, force: true })
  mkdirSync(dirname(path), { recursive: true })
  const temporary = `${path}.${process.pid}.tmp`
  writeFileSync(temporary, contents)
  chmodSync(temporary, mode)
  renameSync(temporary, path)
}

function removeStale(current) {
  const notes = join(dist, '.stale.json')
  const before = existsSync(notes) ? JSON.parse(readFileSync(notes, 'utf8')) : {}
  const now = Date.now()
  const after = {}
  for (const name of filesBelow(dist)) {
    const path = join(dist, name)
    if (current.has(path) || /^(?:types|console)\//.test(name) || !/\.(c?js|js\.map|tmp)$/.test(name)) continue
    const since = before[name] ?? now
    if (now - since > staleMs && now - statSync(path).mtimeMs > staleMs) rmSync(path, { force: true })
    else after[name] = since
  }
  put({ path: notes, contents: Buffer.from(JSON.stringify(after)), mode: 0o644 })
}

const operationsFile = join(root, 'client/operations.ts')

/** An empty operations file for the first build of the client, before the OpenAPI document exists. */
function beginOperations() {
  if (existsSync(operationsFile)) return
  const text = 'export interface Operations {}\nexport const routes = {} as const\n'
  put({ path: operationsFile, contents: Buffer.from(text), mode: 0o644 })
}

/** Writes dist/commands.json, schemas/openapi.json, client/operations.ts and client/commands.ts with the code just built. */
async function buildData(made) {
  if (!['index', 'plugins', 'build-data'].every(name => made.includes(name))) return
  const operations = () => readFileSync(operationsFile, 'utf8')
  const before = operations()
  await run('dist/build-data.js')
  // The client was built with outdated operations.
  if (operations() !== before) await buildCode()
}

/**
 * Fills dist/cache with V8's code cache of a first start: starts a daemon on an empty home and copies its cache. A daemon on
 * another Node version, or after a build that could not run one, creates its own.
 */
async function keepCodeCache() {
  if (!existsSync(daemonFile) || existsSync(cache)) return
  const home = mkdtempSync(join(tmpdir(), 'svc-build-'))
  const kept = () => filesBelow(join(home, 'cache/code')).filter(name => !name.endsWith('.tmp'))
  writeFileSync(join(home, 'config.json'), '{ "http": { "port": 0 } }')
  const child = spawn(process.execPath, [join(dist, 'daemon.cjs')], {
    env: { ...process.env, SVC_HOME: home },
    stdio: 'ignore',
  })
  const exited = new Promise(resolve => child.once('close', resolve))
  const late = AbortSignal.timeout(cacheMs)
  while (child.exitCode === null && !late.aborted && kept().length === 0) {
    await answered(join(home, 'daemon.sock'))
    await sleep(50)
  }
  child.kill()
  await exited
  for (const name of kept()) {
    put({ path: join(cache, name), contents: readFileSync(join(home, 'cache/code', name)), mode: 0o644 })
  }
  if (!existsSync(cache)) console.log('there is no code cache, for no daemon could be started')
  rmSync(home, { recursive: true, force: true })
}

/** Asks as a command line does that starts a daemon: the cache has the code of the first answer too. */
const answered = socketPath =>
  new Promise(resolve => {
    const asked = get({ socketPath, path: '/api/status/identity' }, answer => answer.resume().once('close', resolve))
    asked.once('error', resolve)
  })

/** The console is a program of the browser: it is checked with other types than Node's. */
const consoleTypes = 'plugins/desk/console/app/tsconfig.json'

async function checkAndDeclare() {
  const compiler = 'node_modules/typescript/bin/tsc'
  const types = join(dist, 'types')
  const fresh = join(dist, `types.${process.pid}.tmp`)
  try {
    await run(compiler, '--noEmit')
    if (existsSync(join(root, consoleTypes))) await run(compiler, '-p', consoleTypes)
    if (!['kernel', 'schemas', 'plugins', 'client', 'testing'].some(folder => existsSync(join(root, folder)))) return
    await run(compiler, '-p', 'tsconfig.build.json', '--outDir', fresh)
    // `svc/plugins/<name>` does not depend on the plugin's group.
    for (const { name, group, files } of pluginFolders(root))
      if (files.includes('api.ts'))
        writeFileSync(join(fresh, `plugins/${name}.d.ts`), `export * from './${group}/${name}/api.js'\n`)
    rmSync(types, { recursive: true, force: true })
    renameSync(fresh, types)
  } finally {
    rmSync(fresh, { recursive: true, force: true })
  }
}

function run(...args) {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, args, { cwd: root, stdio: 'inherit' })
    child.once('error', reject)
    child.once('exit', code => (code === 0 ? resolve() : reject(new Error(`${args.join(' ')} failed`))))
  })
}

const unknown = process.argv.slice(2).filter(arg => arg !== '--code')
if (unknown.length > 0) {
  console.error(`unknown argument ${unknown[0]}; usage: node scripts/build.mjs [--code]`)
  process.exit(2)
}
const begun = performance.now()
const isWhole = !process.argv.includes('--code')
try {
  rmSync(stampOf(root), { force: true })
  const digest = digestOfInputs(root)
  beginOperations()
  const made = await buildCode()
  await buildData(made)
  await putConsole()
  putLicences(bundled)
  await keepCodeCache()
  if (isWhole) await checkAndDeclare()
  if (isWhole) put({ path: stampOf(root), contents: Buffer.from(digest), mode: 0o644 })
  console.log(`built ${made.length} entries in ${Math.round(performance.now() - begun)} ms`)
} catch (error) {
  console.error(`build failed: ${error.message}`)
  process.exitCode = 1
}
