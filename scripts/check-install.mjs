// `node scripts/check-install.mjs`: packs this package, installs the archive globally into a temporary prefix, and runs a new
// user's commands on an empty home. Needs a build and the npm registry for dependencies. Exits with 1 on any failure.
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { pluginFolders } from './plugin-folders.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
const folder = mkdtempSync(join(tmpdir(), 'svc-install-'))
const prefix = join(folder, 'prefix')
const project = join(folder, 'project')
const hello = '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}'
const installMs = 180_000
const stepMs = 60_000

/** A minimal environment: the caller's settings or home must not affect the result. */
const env = {
  PATH: `${join(prefix, 'bin')}:${dirname(process.execPath)}:/usr/local/bin:/usr/bin:/bin`,
  HOME: join(folder, 'user'),
}

function step(what, command, args, { timeout = stepMs, cwd = project, expect, ...more } = {}) {
  const begun = performance.now()
  const { status, stdout, stderr, error } = spawnSync(command, args, { cwd, env, encoding: 'utf8', timeout, ...more })
  const took = `${((performance.now() - begun) / 1000).toFixed(1)} s`
  if (status !== 0 || (expect && !expect.test(stdout)))
    throw new Error(`${what} (exit ${status}, ${took}):\n${stdout}${stderr}${error?.message ?? ''}`)
  console.log(`ok  ${what}  ${took}`)
  return stdout
}

/**
 * Imports every `svc/plugins/<name>` and the other entries as an author would: in Node, and in the compiler, which reads their
 * types.
 */
function importEverything(npm, archive) {
  const author = join(folder, 'author')
  mkdirSync(author)
  writeFileSync(join(author, 'package.json'), '{ "private": true, "type": "module" }\n')
  const { devDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const packages = ['typescript', '@types/node'].map(name => `${name}@${devDependencies[name]}`)
  step('npm install as an author', 'npm', ['install', '--no-audit', '--no-fund', archive, ...packages], {
    ...npm,
    cwd: author,
  })
  const plugins = pluginFolders(root).filter(({ files }) => files.includes('api.ts'))
  const entries = [
    'svc',
    'svc/plugin',
    'svc/platform',
    'svc/kit',
    'svc/plugins',
    'svc/client',
    ...plugins.map(({ name }) => `svc/plugins/${name}`),
  ]
  const text = entries.map((entry, i) => `import * as e${i} from '${entry}'`).join('\n')
  const used = `console.log(Object.keys({ ${entries.map((_, i) => `e${i}`).join(', ')} }).length, 'entries')`
  writeFileSync(join(author, 'all.ts'), `${text}\n${used}\n`)
  const options = [
    '--module',
    'nodenext',
    '--target',
    'es2023',
    '--strict',
    '--skipLibCheck',
    'false',
    '--types',
    'node',
  ]
  step(
    `tsc of ${entries.length} entries`,
    process.execPath,
    ['node_modules/typescript/bin/tsc', ...options, 'all.ts'],
    { cwd: author, timeout: installMs },
  )
  step('all entries, imported', process.execPath, ['all.js'], {
    cwd: author,
    expect: new RegExp(`^${entries.length} entries`),
  })
}

try {
  for (const each of [prefix, project, env.HOME]) mkdirSync(each)
  writeFileSync(join(project, 'main.js'), '// TODO: say hello\n')
  mkdirSync(join(env.HOME, '.svc'))
  writeFileSync(join(env.HOME, '.svc', 'config.json'), '{ "http": { "port": 0 } }')
  // npm runs with the caller's environment, which may configure another registry.
  const npm = { env: process.env, timeout: installMs }
  const pack = ['pack', '--ignore-scripts', '--pack-destination', folder]
  const archive = step('npm pack', 'npm', pack, { ...npm, cwd: root })
    .trim()
    .split('\n')
    .at(-1)
  const install = ['install', '--global', '--prefix', prefix, '--no-audit', '--no-fund', join(folder, archive)]
  step('npm install --global', 'npm', install, npm)
  const installed = readdirSync(join(prefix, 'lib/node_modules/svc/node_modules'), { recursive: true })
    .filter(name => /^(@[^/]+\/)?[^/]+\/package\.json$/.test(name))
    .map(name => dirname(name))
  const unknown = installed.filter(name => !/^(valibot|koffi|@koromix\/koffi-[a-z0-9-]+)$/.test(name))
  if (unknown.length > 0)
    throw new Error(`the installation has packages that are bundled or unknown: ${unknown.join(', ')}`)
  step('svc --version', 'svc', ['--version'], { expect: new RegExp(`^${version.replaceAll('.', '\\.')}\n$`) })
  step('svc --help', 'svc', ['--help'], { expect: /run \[prompt\]/ })
  const run = ['run', '--agent', 'report', '--permissions', 'approve-all', 'Report on this folder']
  step('svc run, from an empty home to a finished task', 'svc', run, { expect: /1 file changed:/ })
  if (!existsSync(join(project, 'svc-reports', 'report.md'))) throw new Error('svc run wrote no report')
  if (!existsSync(join(prefix, 'bin', 'svc-agent'))) throw new Error('the agent of the package is not installed')
  // The program is one file with all its libraries: it starts without installed packages and exits at the end of input.
  step('svc-agent', 'svc-agent', [], { input: `${hello}\n`, expect: /"name":"svc-agent"/ })
  step('svc doctor', 'svc', ['doctor'])
  importEverything(npm, join(folder, archive))
} catch (error) {
  console.error(`FAIL  ${error.message}`)
  process.exitCode = 1
} finally {
  spawnSync('svc', ['daemon', 'stop'], { env, timeout: stepMs })
  rmSync(folder, { recursive: true, force: true })
}
