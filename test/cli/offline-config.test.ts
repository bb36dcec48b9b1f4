import { execFile } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { writeText } from '../../cli/setup/settings-file.js'
import { runCli } from './fake-daemon.js'
import { data, dist } from './tree.js'

const run = promisify(execFile)
const program = join(dist, 'svc.cjs')
const folder = mkdtempSync(join(tmpdir(), 'svc-offline-config-'))
test.after(() => rmSync(folder, { recursive: true, force: true }))

function world(name: string) {
  const home = join(folder, name)
  mkdirSync(home)
  const file = join(home, 'config.json')
  const svc = (...argv: string[]) => runCli(home, argv, { data, root: dist, env: { SVC_HOME: home, HOME: folder } })
  return { file, svc }
}

test('a setting that prevents the start is changed without a daemon; comments stay', async () => {
  const { file, svc } = world('kept')
  writeFileSync(file, '{\n  // taken by another program\n  "http": { "port": 2123 }\n}\n')
  const set = await svc('config', 'set', 'http.port', '0')
  assert.equal(
    [set.code, set.stdout],
    [0, 'http.port: written; takes effect when the daemon starts (svc daemon start)\n'],
  )
  assert.match(readFileSync(file, 'utf8'), /\/\/ taken by another program\n {2}"http": { "port": 0 }/)
  assert.is((await svc('config', 'set', 'http.port', '0')).stdout, 'no changes\n')
  await svc('config', 'unset', 'http.port')
  assert.not.match(readFileSync(file, 'utf8'), 'port"')
})

test('concurrent commands without a daemon lose no setting', async () => {
  const { file } = world('concurrent')
  writeFileSync(`${file}.lock`, 'left by a command that was killed')
  utimesSync(`${file}.lock`, 0, 0)
  const settings = [
    ['http.port', '0'],
    ['log.level', 'debug'],
    ['session.busy_input.queue_cap', '9'],
    ['http.enabled', 'true'],
  ] as const
  const env = { PATH: process.env.PATH, HOME: folder, SVC_HOME: dirname(file) }
  await Promise.all(settings.map(set => run(process.execPath, [program, 'config', 'set', ...set], { env })))
  assert.equal(JSON.parse(readFileSync(file, 'utf8')), {
    http: { port: 0, enabled: true },
    log: { level: 'debug' },
    session: { busy_input: { queue_cap: 9 } },
  })
  assert.not(existsSync(`${file}.lock`))
})

test('a value that a daemon would refuse is refused without one, and nothing is written', async () => {
  const { file, svc } = world('refused')
  for (const [key, value, code] of [
    ['http.port', 'banana', 'config_invalid'],
    ['http.prt', '1', 'config_invalid'],
    ['nothing.known', '1', 'config_invalid'],
  ] as const) {
    const refused = await svc('config', 'set', key, value)
    assert.is(refused.code, 7, key)
    assert.match(refused.stderr, `code: ${code}`)
    assert.match(refused.stderr, 'nothing was changed')
  }
  assert.not(existsSync(file))
  writeFileSync(file, '{ broken')
  assert.is((await svc('config', 'set', 'http.port', '0')).code, 7)
  assert.is(readFileSync(file, 'utf8'), '{ broken')
})

test('each invalid member is corrected without a daemon', async () => {
  const { file, svc } = world('repaired')
  writeFileSync(file, '{\n  // comment\n  "http": { "port": "banana" },\n  "log": { "levl": 1 }\n}\n')
  const other = await svc('config', 'set', 'log.level', 'debug')
  assert.is(other.code, 7)
  assert.match(other.stderr, /config\.json:3: http\.port/)
  const wrong = await svc('config', 'set', 'http.port', 'apple')
  assert.is(wrong.code, 7)
  assert.match(wrong.stderr, 'setting_invalid')
  const first = await svc('config', 'set', 'http.port', '0')
  assert.is(first.code, 0, first.stderr)
  assert.match(
    first.stdout,
    /still not valid, so no daemon starts with it\. Correct this as well:\n.*config\.json:4: unknown key log\.levl/,
  )
  const second = await svc('config', 'unset', 'log.levl')
  assert.equal(second.stdout, 'log.levl: written; takes effect when the daemon starts (svc daemon start)\n')
  assert.is((await svc('config', 'check')).code, 0)
  assert.match(readFileSync(file, 'utf8'), /\/\/ comment\n {2}"http": \{ "port": 0 \}/)
})

test('a file that does not parse is not written without a daemon; the refusal gives position and next step', async () => {
  const { file, svc } = world('broken')
  const text = '{\n  "http": { "port": 1,, }\n}\n'
  writeFileSync(file, text)
  for (const argv of [
    ['set', 'http.port', '0'],
    ['unset', 'http.port'],
  ]) {
    const refused = await svc('config', ...argv)
    assert.is(refused.code, 7)
    assert.match(refused.stderr, /config\.json:2:\d+: not valid JSON/)
    assert.match(refused.stderr, /next: correct line 2 of .*config\.json and try again/)
  }
  assert.is(readFileSync(file, 'utf8'), text)
})

test('a setting of a workspace needs the daemon', async () => {
  const { file, svc } = world('workspace')
  const refused = await svc('config', 'set', 'permissions.mode', 'deny-all', '--workspace', folder)
  assert.match(refused.stderr, 'code: no_daemon')
  assert.not(existsSync(file))
})

test('a dry run prints the planned change', async () => {
  const { file, svc } = world('dry')
  assert.match((await svc('config', 'set', 'http.port', '0', '--dry-run')).stdout, 'would be changed')
  assert.not(existsSync(file))
})

test('the permissions of the file stay, and a write that fails leaves no other file', async () => {
  const { file, svc } = world('whole')
  writeFileSync(file, '{}', { mode: 0o640 })
  await svc('config', 'set', 'http.port', '0')
  assert.is(statSync(file).mode & 0o777, 0o640)
  // The file becomes a folder between the check and the write.
  rmSync(file)
  mkdirSync(join(file, 'full'), { recursive: true })
  assert.throws(() => writeText(join(file, '..'), '{}', ''))
  assert.equal(
    readdirSync(join(file, '..')).filter(name => /tmp|lock/.test(name)),
    [],
  )
})

/** Runs `work` as a user without rights, for whom the folders above the homes are open; only the superuser can. */
async function asNobody<T>(work: () => Promise<T>): Promise<T> {
  for (const above of [folder, dirname(folder)]) if (above !== tmpdir()) chmodSync(above, 0o755)
  process.seteuid?.(65534)
  try {
    return await work()
  } finally {
    process.seteuid?.(0)
  }
}

const isRoot = process.geteuid?.() === 0

if (isRoot)
  test('the home of another user is named with its owner by every command', async () => {
    const { file, svc } = world('foreign')
    writeFileSync(file, '{}')
    const home = join(file, '..')
    for (const command of ['job list', 'logs', 'daemon stop', 'doctor', 'config set log.level debug', 'backup list']) {
      // The modules of the command are loaded while they can be read.
      await svc(...command.split(' '))
      chmodSync(home, 0o700)
      const { code, stderr } = await asNobody(() => svc(...command.split(' ')))
      assert.is(code, 6, stderr)
      assert.match(stderr, `error: the home ${home} belongs to another user (uid 0)`)
      assert.match(stderr, 'code: home_owner_mismatch\n')
      assert.match(stderr, "sudo -u '#0' svc")
    }
  })

if (isRoot)
  test('a home below a closed folder cannot be reached', async () => {
    const { file } = world('below')
    chmodSync(dirname(file), 0)
    const below = () => runCli(join(dirname(file), 'home'), ['logs'], { data, root: dist })
    await below()
    const { code, stderr } = await asNobody(below)
    assert.is(code, 1, stderr)
    assert.match(stderr, 'below/home cannot be reached')
    assert.match(stderr, 'code: home_unwritable\n')
  })

if (isRoot)
  test('a home without the permission to write is refused with what to change', async () => {
    const { file, svc } = world('closed')
    writeFileSync(file, '{}')
    const home = join(file, '..')
    await svc('config', 'set', 'http.port', '0')
    for (const path of [home, file]) chownSync(path, 65534, 65534)
    chmodSync(home, 0o500)
    const { code, stderr } = await asNobody(() => svc('config', 'set', 'log.level', 'debug'))
    chmodSync(home, 0o700)
    assert.is(code, 1, stderr)
    assert.match(stderr, 'code: home_unwritable\n')
    assert.match(stderr, 'next: change its permissions')
  })

test.run()
