// `node scripts/check-install.mjs`: packs this package, installs the archive globally into a temporary prefix, and runs what a
// new user would on an empty home. Needs a build and the npm registry, for the dependencies. Exits with 1 when anything fails.
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

/** Nothing of the caller's but what npm and the programs are found by: a setting or a home of theirs must not help. */
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

/** Every `svc/plugins/<name>`, and the other entries, as an author imports them: by Node, and by the compiler, which reads their types. */
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
  // With the caller's settings, for the registry may be one of theirs.
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
  // One file with all its libraries: it starts where none of them is installed, and ends with its input.
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
