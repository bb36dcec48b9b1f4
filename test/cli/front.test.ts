import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { nodeModules } from '../../cli/daemon/load-daemon.js'
import { dist } from './tree.js'

// `front.cjs` and `words.cjs` answer help and completion by themselves, and `svc.cjs` is the whole command line.
const call = (file: string, args: readonly string[], env: object = {}) => {
  const { stdout, stderr, status } = spawnSync(process.execPath, [resolve(dist, file), ...args], {
    encoding: 'utf8',
    env: { ...process.env, SVC_HOME: '/nonexistent', ...env },
  })
  return { stdout, stderr, status }
}

const calls: readonly (readonly string[])[] = [
  ['--help'],
  ['help'],
  ['-h', 'job'],
  ['job', 'create', '--help'],
  ['help', 'run'],
  ['help', 'lease'],
  ['help', 'nonsense'],
  ['session', 'nonsense', '--help'],
  ['--help', '--json'],
  ['status', '-o', 'nonsense', '--help'],
  ['job', 'list', '--', '--help'],
  ['--version'],
]

for (const args of calls)
  test(`svc ${args.join(' ')}: the fast path and the full command line print the same`, () => {
    for (const env of [{}, { COLUMNS: '40', LC_ALL: 'C' }])
      assert.equal(call('bin/svc', args, env), call('svc.cjs', args, env), JSON.stringify(env))
  })

test('everything that the files of the command line load from each other exists', () => {
  const files = readdirSync(join(dist, 'cli')).filter(name => name.endsWith('.cjs'))
  const textOf = (file: string) => readFileSync(join(dist, file), 'utf8')
  const main = textOf('svc.cjs')
  const loaded = (file: string, by: RegExp) => [...textOf(file).matchAll(by)].map(([, name]) => name as string)
  for (const file of ['svc.cjs', 'front.cjs', 'words.cjs', ...files.map(name => `cli/${name}`)]) {
    for (const name of loaded(file, /(?:require|_later)\("(\.\.?\/[^"]+\.cjs)"\)/g))
      assert.ok(existsSync(join(dist, file, '..', name)), `${file} loads ${name}`)
    for (const name of loaded(file, /(?:require|_later)\("(svc:[^"]+)"\)/g))
      assert.ok(main.includes(`"${name}":`), `${file} takes ${name} from svc.cjs`)
  }
  assert.ok(files.length > 20)
  // A call reads the whole file: what few calls need must not come back.
  assert.ok(main.length < 220_000, `svc.cjs has ${main.length} bytes`)
})

test('the libraries of the daemon are complete, and of the kind that it takes them for', async () => {
  const code = readFileSync(join(dist, 'run-daemon.cjs'), 'utf8')
  const taken = [...code.matchAll(/require\("\.\/libraries\/([\w-]+\.cjs)"\)(?:\.(\w+)|\["([^"]+)"\])/g)]
  const values = new Map<string, unknown>()
  for (const [, file = '', short, name = short ?? ''] of taken) {
    const { default: all } = await import(join(dist, 'libraries', file))
    assert.ok(all[name], name)
    values.set(name, all[name])
  }
  for (const name of ['@fastify/busboy', 'cronstrue', 'light-my-request'])
    assert.type(values.get(name), 'function', name)
})

test('the code of the daemon is ASCII: it is read as Latin-1, and the bundler leaves regular expressions as they are', () => {
  const odd = readFileSync(join(dist, 'run-daemon.cjs'), 'latin1').match(/.{0,40}[^\0-\x7f]+.{0,20}/g)
  assert.equal(odd, null)
})

test('modules of Node that the code of the daemon loads are loaded before the flags of V8 change', () => {
  const code = readFileSync(join(dist, 'run-daemon.cjs'), 'latin1')
  const wanted = new Set([...code.matchAll(/\brequire\("(?:node:)?([a-z_/]+)"\)/g)].map(([, name]) => name as string))
  // Loaded by their first use.
  for (const later of ['https', 'inspector', 'test', 'tls']) wanted.delete(later)
  assert.ok(wanted.has('http'))
  const script = `for (const name of ${JSON.stringify(nodeModules)}) process.getBuiltinModule(name)
    const loaded = new Set(process.moduleLoadList.map(name => name.replace('NativeModule ', '')))
    console.log(${JSON.stringify([...wanted])}.filter(name => !loaded.has(name)).join(' '))`
  assert.is(spawnSync(process.execPath, ['-e', script], { encoding: 'utf8' }).stdout.trim(), '')
})

test('completion of words by the fast path and by the full command line is the same', () => {
  const env = { SVC_WORDS: 'session\nshow\n\n' }
  assert.equal(call('bin/svc', ['completion', 'words'], env), call('svc.cjs', ['completion', 'words'], env))
})

test('help is written to an unread pipe, a full pipe and a file', () => {
  const script = `"$0" "$1" --help | true; "$0" "$1" --help | { sleep 1; wc -l; }; "$0" "$1" --help > "$2"; wc -l < "$2"`
  const file = join(mkdtempSync(join(tmpdir(), 'svc-help-')), 'help')
  const { stdout, stderr } = spawnSync(
    'bash',
    ['-c', `${script}; rm "$2"`, process.execPath, join(dist, 'bin/svc'), file],
    {
      encoding: 'utf8',
      env: { ...process.env, SVC_HOME: '/nonexistent' },
    },
  )
  assert.is(stderr, '')
  const [piped, written] = stdout.trim().split('\n')
  assert.is(piped, written)
  assert.ok(Number(piped) > 20)
})

test('help into an unwritable output fails without a stack trace', () => {
  if (!existsSync('/dev/full')) return
  for (const args of [['--help'], ['skill', '--help']]) {
    const { status, stderr } = spawnSync(
      'sh',
      ['-c', '"$0" "$@" >/dev/full', process.execPath, join(dist, 'bin/svc'), ...args],
      { encoding: 'utf8', env: { ...process.env, SVC_HOME: '/nonexistent' } },
    )
    assert.is(status, 1, `${args.join(' ')}: ${stderr}`)
    assert.not.match(stderr, /\n\s+at /)
  }
})

test('a damaged package is reported without a stack trace', () => {
  const root = mkdtempSync(join(tmpdir(), 'svc-damaged-'))
  for (const name of ['bin', 'cli', 'front.cjs', 'words.cjs', 'svc.cjs'])
    cpSync(join(dist, name), join(root, name), { recursive: true })
  for (const text of [undefined, '', '{', '{"routes":[\n'])
    for (const args of [['--help'], ['job', 'list']]) {
      rmSync(join(root, 'commands.json'), { force: true })
      if (text !== undefined) writeFileSync(join(root, 'commands.json'), text)
      const { status, stderr } = call(join(root, 'bin/svc'), args)
      assert.is(status, 1, stderr)
      assert.match(
        stderr,
        /^error: .*commands\.json is missing or damaged\n {2}code: package_damaged\n {2}next: install/,
      )
    }
  rmSync(root, { recursive: true })
})

test.run()
