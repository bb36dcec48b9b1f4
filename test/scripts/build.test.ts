// proof, timeout: 120s: builds of a whole tree
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { scratchTree } from './scratch-tree.js'

const tree = scratchTree()
const at = (name: string) => join(tree.path, name)
const read = (name: string) => readFileSync(at(name), 'utf8')

tree.write({
  'kernel/index.ts': `export const name: string = 'kernel'\nexport const heavy = () => import('./heavy.js')\n`,
  'kernel/heavy.ts': `export const weight = 'first'\n`,
  'kernel/plugin.ts': `export { name } from './index.js'\n`,
  'plugins/index.ts': `export { pull } from './apart/pullers/api.js'\n`,
  'plugins/apart/pullers/index.ts': 'export {}\n',
  'plugins/apart/pullers/api.ts': `import { name } from '../../../kernel/index.js'\nexport const pull = (): string => name\n`,
  'schemas/deep/area.ts': 'export const area = 1\n',
  'schemas/area.test.ts': 'export const no = 1\n',
  'cli/svc.ts': `import { name } from '../kernel/index.js'\nconsole.log(name)\nconst fail = () => { throw new Error('line three') }\nfail()\nconsole.log(name)\n`,
  'cli/build-data.ts': `import { writeFileSync } from 'node:fs'\nimport { name } from '../kernel/index.js'\nimport { pull } from '../plugins/index.js'\nwriteFileSync('dist/commands.json', JSON.stringify([name, pull()]))\n`,
  'examples/agents/command/agent.ts': `#!/usr/bin/env node\nconsole.log('command')\n`,
  'examples/agents/report/agent.ts': `#!/usr/bin/env node\nconsole.log('report')\n`,
})

test.after(() => tree.remove())

function build(...args: string[]): { status: number | null; out: string } {
  const { status, stdout, stderr } = spawnSync(process.execPath, ['scripts/build.mjs', ...args], {
    cwd: tree.path,
    encoding: 'utf8',
  })
  return { status, out: stdout + stderr }
}

function built(...args: string[]): void {
  const { status, out } = build(...args)
  assert.is(status, 0, out)
}

function node(...args: string[]): { out: string; err: string } {
  const { stdout, stderr } = spawnSync(args[0]!, args.slice(1), { cwd: tree.path, encoding: 'utf8' })
  return { out: stdout, err: stderr }
}

function chunks(word: string): string[] {
  const names = readdirSync(at('dist/chunks')).filter(name => name.endsWith('.js'))
  return names.filter(name => read(`dist/chunks/${name}`).includes(word))
}

test('each existing entry is built at its place and runs', () => {
  built('--code')
  const made = [
    'index.js',
    'plugin.js',
    'plugins.js',
    'plugins/pullers.js',
    'schemas/deep/area.js',
    'svc.cjs',
    'bin/svc-command-agent.cjs',
    'bin/svc-report-agent.cjs',
  ]
  for (const name of made) assert.ok(existsSync(at(`dist/${name}`)) && existsSync(at(`dist/${name}.map`)), name)
  assert.not(existsSync(at('dist/daemon.cjs')))
  assert.not(existsSync(at('dist/schemas/area.test.js')))
  assert.equal(JSON.parse(read('dist/commands.json')), ['kernel', 'kernel'])
  assert.is(node('dist/bin/svc-report-agent.cjs').out, 'report\n')
})

test('commands are executable, and their source maps still point to the right line', () => {
  for (const name of ['svc.cjs', 'bin/svc-report-agent.cjs']) {
    assert.is(statSync(at(`dist/${name}`)).mode & 0o777, 0o755)
    assert.is(read(`dist/${name}`).match(/^#!\/usr\/bin\/env node\n(?!#!)/)?.length, 1)
  }
  assert.is(node('dist/svc.cjs').out, 'kernel\n')
  assert.match(
    node(process.execPath, '--enable-source-maps', 'dist/svc.cjs').err,
    /cli\/svc\.ts:3:28\)[\s\S]*cli\/svc\.ts:4:1\)/,
  )
})

test('a dynamic import is a separate chunk; an obsolete one stays for a minute', () => {
  const [before, ...more] = chunks('first')
  assert.equal(more, [])
  tree.write({ 'kernel/heavy.ts': `export const weight = 'second'\n` })
  // However old the file is: a daemon that started a moment ago may load it.
  const old = new Date(Date.now() - 3_600_000)
  utimesSync(at(`dist/chunks/${before}`), old, old)
  built('--code')
  assert.is(chunks('second').length, 1)
  assert.equal(chunks('first'), [before])
  built('--code')
  assert.equal(chunks('first'), [before])
  const notes = JSON.parse(read('dist/.stale.json'))
  for (const name of Object.keys(notes)) notes[name] -= 61_000
  writeFileSync(at('dist/.stale.json'), JSON.stringify(notes))
  built('--code')
  assert.equal(chunks('first'), [])
  assert.is(chunks('second').length, 1)
})

test('a source with a syntax error or a missing import fails and changes nothing', () => {
  const before = read('dist/plugins.js')
  const good = read('plugins/index.ts')
  for (const bad of ['export const = 1\n', `export { push } from './apart/pullers/api.js'\n`]) {
    tree.write({ 'plugins/index.ts': bad })
    const { status, out } = build('--code')
    assert.is(status, 1)
    assert.match(out, 'plugins/index.ts')
    assert.is(read('dist/plugins.js'), before)
  }
  tree.write({ 'plugins/index.ts': good })
})

test('the whole build checks types and declares only kernel, schemas and plugins', () => {
  built()
  assert.match(read('dist/types/plugins/apart/pullers/api.d.ts'), 'pull: () => string')
  assert.is(read('dist/types/plugins/pullers.d.ts'), "export * from './apart/pullers/api.js'\n")
  assert.ok(existsSync(at('dist/types/kernel/index.d.ts')))
  assert.ok(existsSync(at('dist/types/schemas/deep/area.d.ts')))
  assert.not(existsSync(at('dist/types/cli')))
  tree.write({ 'cli/svc.ts': `export const wrong: number = 'text'\n` })
  const { status, out } = build()
  assert.is(status, 1)
  assert.match(out, /cli\/svc\.ts.*TS2322/)
  assert.ok(existsSync(at('dist/types/kernel/index.d.ts')))
  assert.equal(
    readdirSync(at('dist')).filter(name => name.endsWith('.tmp')),
    [],
  )
  assert.is(build('--quick').status, 2)
})

test('npm builds once for the same sources, and again after a change, a partial or a failed build', () => {
  // The build of this tree makes no operations of its own.
  for (const name of ['client/operations.ts', 'client/commands.ts', 'schemas/openapi.json'])
    tree.write({ [name]: '{}' })
  tree.write({ 'cli/svc.ts': `export const right: string = 'text'\n` })
  const prepare = () => {
    const { status, stdout } = spawnSync(process.execPath, ['scripts/prepare.mjs'], {
      cwd: tree.path,
      encoding: 'utf8',
    })
    return [status, /up to date/.test(stdout) ? 'left out' : 'built']
  }
  assert.equal(prepare(), [0, 'built'])
  assert.equal(prepare(), [0, 'left out'])
  tree.write({ 'kernel/heavy.ts': `export const weight = 'third'\n` })
  assert.equal(prepare(), [0, 'built'])
  assert.is(chunks('third').length, 1)
  assert.equal(prepare(), [0, 'left out'])
  built('--code')
  assert.equal(prepare(), [0, 'built'])
  tree.write({ 'cli/svc.ts': `export const wrong: number = 'text'\n` })
  assert.equal(prepare(), [1, 'built'])
  assert.equal(prepare(), [1, 'built'])
})

test.run()
