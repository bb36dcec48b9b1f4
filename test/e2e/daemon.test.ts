// proof, timeout: 120s: the built program, started and killed
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { inspectProcess } from '../../plugins/platform/processes/inspect.js'
import { Installed, program, until } from './installed.js'

const TERMINAL = fileURLToPath(new URL('../fixtures/terminal.py', import.meta.url))

const test = suite<{ at: Installed }>('daemon')
test.before.each(context => {
  context.at = new Installed()
})
test.after.each(({ at }) => at.remove())

const log = (at: Installed) => readFileSync(join(at.home, 'logs', 'svc.log'), 'utf8')

test('start and stop print JSON for programs', async ({ at }) => {
  const started = await at.json<{ status: string; pid: number; http: string }>('daemon', 'start')
  assert.is(started.status, 'started')
  assert.is(started.pid, at.discovery.pid)
  assert.is(started.http, `http://localhost:${at.discovery.port}`)
  assert.is(statSync(join(at.home, 'daemon.sock')).mode & 0o777, 0o600)
  assert.is(statSync(at.home).mode & 0o777, 0o700)
  assert.is((await at.json<{ status: string }>('daemon', 'start')).status, 'already_running')
  assert.equal(await at.json('daemon', 'stop'), { status: 'stopped', pid: started.pid, home: at.home })
  assert.equal(await at.json('daemon', 'stop'), { status: 'not_running', home: at.home })
  for (const line of log(at).trim().split('\n')) assert.type(JSON.parse(line).msg, 'string')
})

test('a daemon without TCP reports it with the reason', async ({ at }) => {
  at.writeHome('config.json', '{ "http": { "enabled": false } }')
  assert.match((await at.run(['daemon', 'start'])).stdout, /TCP is off: http\.enabled is false/)
  assert.is(at.discovery.port, 0)
  assert.match((await at.run(['status'])).stdout, /HTTP off +http\.enabled is false/)
  const again = await at.json<{ http?: string; http_off: string }>('daemon', 'start')
  assert.equal([again.http, again.http_off], [undefined, 'http.enabled is false in config.json'])
})

test('concurrent starts make one daemon, and only that one rotates the log', async ({ at }) => {
  at.writeHome('config.json', JSON.stringify({ http: { port: 0 }, log: { max_size_mb: 1 } }))
  at.writeHome('logs/svc.log', `${'x'.repeat(2 ** 20)}\n`)
  const started = await Promise.all([1, 2, 3].map(() => at.json<{ status: string; pid: number }>('daemon', 'start')))
  assert.is(new Set(started.map(({ pid }) => pid)).size, 1)
  assert.ok(started.some(({ status }) => status === 'started'))
  assert.equal(
    readdirSync(join(at.home, 'logs'))
      .filter(name => name.startsWith('svc.log'))
      .sort(),
    ['svc.log', 'svc.log.1'],
  )
  await at.json('daemon', 'stop')
  assert.match(log(at), 'daemon stopped')
})

test('an unwritable log does not prevent a start, and the doctor names it', async ({ at }) => {
  mkdirSync(join(at.home, 'logs', 'svc.log'), { recursive: true })
  assert.is((await at.json<{ status: string }>('daemon', 'start')).status, 'started')
  const { items } = await at.json<{ items: { code: string }[] }>('doctor', '--only', 'home.log')
  assert.equal(
    items.map(({ code }) => code),
    ['log_unwritable'],
  )
})

test('a failed start gives the reason and the path of the log', async ({ at }) => {
  at.writeHome('config.json', '{\n  "http": { "prot": 1 }\n}')
  const { code, stderr } = await at.run(['daemon', 'start'])
  assert.is(code, 1)
  assert.match(stderr, 'config.json:2: unknown key http.prot')
  assert.match(stderr, join(at.home, 'logs', 'svc.log'))
  assert.is((await at.run(['status'])).code, 3)
})

test('a taken port is named', async ({ at }) => {
  const server = createServer()
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  try {
    at.writeHome('config.json', JSON.stringify({ http: { port } }))
    const { code, stderr } = await at.run(['daemon', 'start'])
    assert.is(code, 1)
    assert.match(stderr, `port ${port}`)
    assert.not(existsSync(join(at.home, 'daemon.sock')))
    assert.match(stderr, /reason: http_port_in_use\n.*\n {2}next: svc config set http\.port 0\n$/)
    assert.is((await at.run(['config', 'set', 'http.port', '0'])).code, 0)
    assert.is((await at.json<{ status: string }>('daemon', 'start')).status, 'started')
  } finally {
    server.close()
  }
})

test('a foreground daemon logs to its output, holds the lock and ends with Ctrl-C', async ({ at }) => {
  const daemon = at.start(['daemon', 'start', '--foreground'])
  await daemon.shows(/daemon is ready/)
  await at.svc('status')
  const second = await at.run(['daemon', 'start', '--foreground'])
  assert.is(second.code, 5)
  assert.match(second.stderr, `daemon: already running with pid ${daemon.child.pid}`)
  assert.match(await at.svc('daemon', 'start'), `already running (pid ${daemon.child.pid})`)
  daemon.child.kill('SIGINT')
  const { code, stdout } = await daemon.ended
  assert.is(code, 0)
  assert.match(stdout, 'daemon stopped')
  assert.match(log(at), 'daemon stopped')
  assert.not(existsSync(join(at.home, 'daemon.json')))
})

/** Starts a foreground daemon on a terminal, or with its output in a pipe, and closes that once it is ready. */
async function leftDaemon(at: Installed, ...command: string[]) {
  const child = spawn(
    command[0]!,
    [...command.slice(1), process.execPath, program, 'daemon', 'start', '--foreground'],
    {
      env: at.env,
      stdio: ['pipe', 'pipe', 'ignore'],
    },
  )
  const ended = once(child, 'exit')
  await once(child.stdout, 'data')
  const { pid } = at.discovery
  return { child, ended, pid }
}
const gone = (pid: number) => () => inspectProcess(pid, process.platform)?.ended !== false || undefined

test('a closed terminal stops a foreground daemon cleanly', async ({ at }) => {
  const { child, ended, pid } = await leftDaemon(at, 'python3', TERMINAL)
  child.kill('SIGKILL')
  await ended
  await until(gone(pid), 60_000, () => `the end of the daemon\n${log(at)}`)
  assert.match(log(at), /SIGHUP: the daemon stops[\s\S]*daemon stopped/)
  assert.not(existsSync(join(at.home, 'daemon.json')))
})

test('a foreground daemon outlives the reader of its output', async ({ at }) => {
  const { child, ended, pid } = await leftDaemon(at, 'env')
  child.stdout.destroy()
  await at.svc('status')
  await at.svc('config', 'set', 'log.level', 'debug')
  await at.svc('status')
  assert.is(at.discovery.pid, pid)
  child.kill('SIGTERM')
  await ended
  assert.match(log(at), 'daemon stopped')
})

test('after kill -9 the next start takes over, whatever files remain', async ({ at }) => {
  await at.svc('daemon', 'start')
  const { pid } = at.discovery
  process.kill(pid, 'SIGKILL')
  const status = await until(
    async () => {
      const ran = await at.run(['status'])
      return ran.code === 0 ? undefined : ran
    },
    60_000,
    () => 'the end of the daemon',
  )
  // Killed while it answered, it has ended; asked after that, there is none.
  assert.is(status.code, 3, status.stderr)
  assert.match((await at.run(['status'])).stderr, 'no daemon is running')
  assert.ok(existsSync(join(at.home, 'daemon.json')))
  assert.match(await at.svc('daemon', 'stop'), 'no daemon is running')
  assert.match(await at.svc('daemon', 'start'), 'daemon started')
  assert.is.not(at.discovery.pid, pid)
})

test('an unresponsive daemon and a missing one have different errors', async ({ at }) => {
  await at.svc('daemon', 'start')
  const { pid } = at.discovery
  const { code, stderr } = await at.run(['status'], undefined, { SVC_SOCKET: join(at.folder, 'elsewhere.sock') })
  assert.is(code, 3)
  assert.match(stderr, `(pid ${pid}) does not answer`)
})

/** Makes the daemon misbehave at each SIGUSR2, from a module at this place. */
function misbehave(at: Installed, folder: string): Readonly<Record<string, string>> {
  const file = join(at.folder, folder, 'fault.mjs')
  mkdirSync(join(at.folder, folder), { recursive: true })
  writeFileSync(
    file,
    `const faults = [
      () => Promise.reject(new Error('stray rejection')),
      () => process.exit(3),
      () => { throw new Error('stray exception') },
    ]
    if (/daemon\\.cjs|--foreground/.test(process.argv.join())) process.on('SIGUSR2', () => faults.shift()?.())`,
  )
  return { NODE_OPTIONS: `--import ${file}` }
}

async function provoke(at: Installed, pid: number, text: string): Promise<void> {
  process.kill(pid, 'SIGUSR2')
  await until(
    () => (log(at).includes(text) ? true : undefined),
    60_000,
    () => `${text} in the log`,
  )
}

test('an uncaught exception of a drop-in is logged under its name, and the daemon continues', async ({ at }) => {
  assert.is(
    (await at.run(['daemon', 'start'], undefined, misbehave(at, 'home/cache/extensions/abc123/acme.bad'))).code,
    0,
  )
  const { pid } = at.discovery
  for (const text of ['stray rejection', 'a plugin must not call process.exit', 'stray exception'])
    await provoke(at, pid, text)
  await at.svc('status')
  const lines = log(at)
    .trim()
    .split('\n')
    .map(line => JSON.parse(line))
  assert.equal(
    lines.filter(({ level }) => level === 'error').map(({ owner }) => owner),
    ['acme.bad', 'acme.bad', 'acme.bad'],
  )
})

test('an extension shares the exports of the package with a daemon bundled into one file', async ({ at }) => {
  const folder = 'extensions/acme.keep'
  cpSync(fileURLToPath(new URL(`../../examples/${folder}`, import.meta.url)), join(at.home, folder), {
    recursive: true,
  })
  await at.svc('daemon', 'start')
  await at.svc('extension', 'list')
  await at.svc('workspace', 'add', at.makeRepository('kept'), '--name', 'kept')
  const record = { scope: { kind: 'global' }, spec: { workspace: 'kept', why: 'for long' }, expected_version: 0 }
  assert.is((await at.request('socket', 'PUT', '/api/resources/acme.keep/first', record)).status, 201)
  const refused = await at.request('socket', 'DELETE', '/api/workspaces/kept')
  assert.is(refused.status, 409)
  assert.match(refused.text, /"code":"acme_workspace_kept".*svc resource list acme.keep/)
  assert.match((await at.request('socket', 'GET', '/api/ext/acme.keep/kept')).text, 'for long')
})

test('a stray rejection of the daemon is logged, and an uncaught exception exits with 70', async ({ at }) => {
  const daemon = at.start(['daemon', 'start', '--foreground'], undefined, misbehave(at, 'elsewhere'))
  await daemon.shows(/daemon is ready/)
  const pid = daemon.child.pid as number
  await provoke(at, pid, 'stray rejection')
  await at.svc('status')
  await provoke(at, pid, 'a plugin must not call process.exit')
  assert.is((await daemon.ended).code, 70)
  assert.match(await at.svc('daemon', 'start'), 'daemon started')
})

test.run()
