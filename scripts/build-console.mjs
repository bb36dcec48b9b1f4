import { createHash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'
import { build } from 'esbuild'

const app = 'plugins/desk/console/app'

/** Files that are served with the name that they have here. */
const named = {
  'icon.svg': 'image/svg+xml',
  'icons/icon-192.png': 'image/png',
  'icons/icon-512.png': 'image/png',
  'icons/icon-maskable-512.png': 'image/png',
  'manifest.webmanifest': 'application/manifest+json',
}
const types = { js: 'text/javascript; charset=utf-8', css: 'text/css; charset=utf-8' }

/**
 * Builds the console of the browser: its files, compressed in advance, and `files.json`, which lists them for the daemon.
 * @param {string} root folder of the package
 * @returns {Promise<{ files: { name: string, contents: Buffer }[], outputs: object }>} files relative to dist/console, and the outputs
 * of esbuild
 */
export async function buildConsole(root) {
  if (!existsSync(join(root, app))) return { files: [], outputs: {} }
  const { outputFiles, metafile } = await build({
    absWorkingDir: root,
    entryPoints: { main: `${app}/main.tsx`, style: `${app}/style.css` },
    outdir: 'dist/console',
    entryNames: '[name]-[hash]',
    chunkNames: '[name]-[hash]',
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'browser',
    target: 'es2022',
    jsx: 'automatic',
    jsxImportSource: 'preact',
    alias: { react: 'preact/compat', 'react-dom': 'preact/compat', 'react/jsx-runtime': 'preact/jsx-runtime' },
    tsconfig: join(root, app, 'tsconfig.json'),
    external: ['icon.svg'],
    minify: true,
    legalComments: 'none',
    metafile: true,
    write: false,
    logLevel: 'warning',
  })
  const built = outputFiles.map(({ path, contents }) => [basename(path), Buffer.from(contents)])
  const nameOf = ending => built.map(([name]) => name).find(name => ending.test(name))
  const page = readFileSync(join(root, app, 'index.html'), 'utf8')
    .replace('STYLE', nameOf(/^style-.*\.css$/))
    .replace('SCRIPT', nameOf(/^main-.*\.js$/))
  const all = [
    ...built.map(([name, contents]) => ({ name, contents, type: types[name.split('.').pop()], hashed: true })),
    ...Object.entries(named).map(([name, type]) => ({
      name: basename(name),
      contents: readFileSync(join(root, app, name)),
      type,
      hashed: false,
    })),
    { name: 'commands.json', contents: commandsOf(root), type: 'application/json', hashed: false },
    { name: 'index.html', contents: Buffer.from(page), type: 'text/html; charset=utf-8', hashed: false },
  ]
  all.push({ name: 'worker.js', contents: await workerOf(root, all), type: types.js, hashed: false })
  const listed = {}
  const files = []
  for (const { name, contents, type, hashed } of all) {
    const packed = [
      ['br', '.br', brotliCompressSync(contents, { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } })],
      ['gzip', '.gz', gzipSync(contents, { level: 9 })],
    ].filter(([, , bytes]) => bytes.length < contents.length)
    const etag = `"${createHash('sha256').update(contents).digest('hex').slice(0, 32)}"`
    listed[name] = { type, etag, hashed, encodings: packed.map(([encoding]) => encoding) }
    files.push({ name, contents }, ...packed.map(([, suffix, bytes]) => ({ name: name + suffix, contents: bytes })))
  }
  files.push({ name: 'files.json', contents: Buffer.from(JSON.stringify({ files: listed })) })
  return { files, outputs: metafile.outputs }
}

/**
 * The service worker, which keeps the page, the files with a hash, and the icon for times without a daemon. Its bytes change with each
 * of them, so that the browser installs it again after an upgrade.
 */
async function workerOf(root, all) {
  const shell = all.filter(({ name, hashed }) => hashed || name === 'index.html' || name === 'icon.svg')
  const digest = createHash('sha256')
  for (const { name, contents } of shell) digest.update(name).update(contents)
  const urls = shell.map(({ name }) => (name === 'index.html' ? '/console' : `/console/assets/${name}`))
  const { outputFiles } = await build({
    absWorkingDir: root,
    entryPoints: [`${app}/worker/worker.ts`],
    bundle: true,
    format: 'iife',
    platform: 'browser',
    target: 'es2022',
    tsconfig: join(root, app, 'tsconfig.json'),
    define: { SHELL: JSON.stringify(urls), VERSION: JSON.stringify(digest.digest('hex').slice(0, 16)) },
    minify: true,
    legalComments: 'none',
    write: false,
    logLevel: 'warning',
  })
  return Buffer.from(outputFiles[0].contents)
}

/** Words and summary of each command of the command line, for the palette. */
function commandsOf(root) {
  const file = join(root, 'dist/commands.json')
  const { routes = [], commands = [] } = existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : {}
  return Buffer.from(JSON.stringify([...routes, ...commands].map(({ path, summary }) => [path, summary]).sort()))
}
