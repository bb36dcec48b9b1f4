// proof, timeout: 120s: daemons as a service manager starts them, with a receiver of its datagrams
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { Installed, until } from './installed.js'

const root = fileURLToPath(new URL('../..', import.meta.url))
const daemonProgram = join(root, 'dist/daemon.cjs')
/** Milliseconds: many times what anything takes, for the machine may be busy. */
const PATIENCE_MS = 60_000

interface Message {
  readonly at: number
  readonly fields: Readonly<Record<string, string>>
}

/** A home, and what its daemons told their manager. */
class Managed {
  readonly at = new Installed()
  readonly messages: Message[] = []
  readonly name: string
  readonly #children: ChildProcess[] = []

  constructor(abstract = false) {
    this.name = abstract ? `@${this.at.folder}/notify` : join(this.at.folder, 'notify')
  }

  async listen(): Promise<void> {
    const child = spawn('python3', [join(root, 'test/fixtures/notify-receiver.py'), this.name], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    this.#children.push(child)
    let rest = ''
    let isBound = false
    child.stdout.setEncoding('utf8').on('data', text => {
      const lines = (rest + text).split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) {
        const message = JSON.parse(line)
        if (message.bound) isBound = true
        else this.messages.push(message)
      }
    })
    await until(
      () => isBound || undefined,
      PATIENCE_MS,
      () => 'the receiver',
    )
  }

  /** Starts a daemon as a manager does. */
  start(env: Readonly<Record<string, string>> = {}, argv = [process.execPath, daemonProgram, '--service=systemd']) {
    const child = spawn(argv[0] as string, argv.slice(1), {
      env: { ...this.at.env, NOTIFY_SOCKET: this.name, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    this.#children.push(child)
    let stderr = ''
    child.stderr.setEncoding('utf8').on('data', text => {
      stderr += text
    })
    const ended = new Promise<{ code: number | null; stderr: string }>(resolve =>
      child.once('close', code => resolve({ code, stderr })),
    )
    return { child, ended }
  }

  /** How often a message had this field. */
  count(field: string): number {
    return this.messages.filter(({ fields }) => field in fields).length
  }

  told(field: string, times = 1): Promise<true> {
    return until(
      () => this.count(field) >= times || undefined,
      PATIENCE_MS,
      () => `${times} × ${field} in ${JSON.stringify(this.messages)}${this.at.logTail()}`,
    )
  }

  async remove(): Promise<void> {
    for (const child of this.#children) if (child.exitCode === null) child.kill('SIGKILL')
    await this.at.remove()
  }
}

const test = suite<{ on: Managed }>('service')
test.before.each(context => {
  context.on = new Managed()
})
test.after.each(({ on }) => on.remove())

test('the manager gets READY, WATCHDOG, RELOADING, READY and STOPPING in order from the daemon', async ({ on }) => {
  await on.listen()
  const { child, ended } = on.start({ WATCHDOG_USEC: '300000' })
  await on.told('READY')
  await on.told('WATCHDOG', 3)
  on.at.writeHome('config.json', JSON.stringify({ http: { port: 0 }, log: { level: 'debug' } }))
  child.kill('SIGHUP')
  await on.told('READY', 2)
  const level = await on.at.json<{ value: unknown }>('config', 'get', 'log.level')
  assert.match(JSON.stringify(level), 'debug')
  child.kill('SIGTERM')
  assert.is((await ended).code, 0)
  const order = on.messages.map(({ fields }) => Object.keys(fields)[0]).filter(name => name !== 'WATCHDOG')
  assert.equal(order, ['READY', 'RELOADING', 'READY', 'STOPPING'])
  assert.is(on.messages[0]?.fields.MAINPID, String(child.pid))
  const [first] = on.messages.map(({ fields }) => Object.keys(fields)[0])
  assert.is(first, 'READY', 'nothing is said before')
})

test('watchdog messages come from the event loop: a blocked loop sends none, and no descendant can send one', async ({
  on,
}) => {
  const held = join(on.at.folder, 'held')
  on.at.writeHome(
    'extensions/acme.spin/extension.toml',
    'name = "acme.spin"\nversion = "1.0.0"\napiVersion = 2\nmain = "main.mjs"\n',
  )
  on.at.writeHome(
    'extensions/acme.spin/main.mjs',
    `import { execFileSync } from 'node:child_process'
    import { writeFileSync } from 'node:fs'
    const cell = new Int32Array(new SharedArrayBuffer(4))
    export default {
      name: 'acme.spin', version: '1.0.0', requires: {}, surface: {},
      apply() {
        process.on('SIGUSR2', () => {
          const begin = Number(process.hrtime.bigint())
          for (let left = 75; left > 0; left--) Atomics.wait(cell, 0, 0, 20)
          const end = Number(process.hrtime.bigint())
          const environment = execFileSync('env', { encoding: 'utf8' })
          writeFileSync(${JSON.stringify(held)}, JSON.stringify({ begin, end, environment }))
        })
      },
    }`,
  )
  await on.listen()
  const { child } = on.start({ WATCHDOG_USEC: '150000', LISTEN_FDS: '2', LISTEN_PID: '1' })
  // Extensions are loaded once the daemon serves.
  const isLoaded = async () => /acme\.spin\s+\S+\s+active/.test((await on.at.run(['plugin', 'list'])).stdout)
  await until(
    async () => (await isLoaded()) || undefined,
    PATIENCE_MS,
    () => `acme.spin${on.at.logTail()}`,
  )
  await on.told('WATCHDOG', 3)
  const before = on.count('WATCHDOG')
  child.kill('SIGUSR2')
  await until(
    () => existsSync(held) || undefined,
    PATIENCE_MS,
    () => `the end of the hold${on.at.logTail()}`,
  )
  const after = on.count('WATCHDOG')
  await on.told('WATCHDOG', after + 2)
  const { begin, end, environment } = JSON.parse(readFileSync(held, 'utf8'))
  const times = on.messages.filter(({ fields }) => 'WATCHDOG' in fields).map(({ at }) => at)
  assert.ok(times.filter(at => at < begin).length >= Math.min(3, before), 'it was told before')
  // Thirty would have come. One may be on its way when the hold begins.
  const within = times.filter(at => at > begin && at < end).length
  assert.ok(within <= 1, `a loop that is held is told of as alive: ${within} times`)
  assert.not.match(environment, /NOTIFY_SOCKET|WATCHDOG_|LISTEN_/)
})

test('exit codes tell the manager: 75 restart, 78 no restart helps, 5 another daemon runs', async ({ on }) => {
  await on.listen()
  const first = on.start()
  await on.told('READY')
  const second = await on.start({ NOTIFY_SOCKET: '' }).ended
  assert.is(second.code, 5, second.stderr)
  // As a manager would: what ended with 75 is started again.
  const restarted = on.at.run(['daemon', 'restart'])
  assert.is((await first.ended).code, 75)
  const next = on.start()
  const { code, stdout, stderr } = await restarted
  assert.is(code, 0, stderr)
  assert.match(stdout, `daemon restarted (pid ${first.child.pid}, now ${next.child.pid})`)
  next.child.kill('SIGTERM')
  assert.is((await next.ended).code, 0)
  on.at.writeHome('config.json', '{ "http": { "port": 0 }, "nothing": 1 }')
  const broken = await on.start().ended
  assert.is(broken.code, 78, broken.stderr)
  assert.match(broken.stderr, 'unknown key nothing')
  const launchd = await on.start({}, [process.execPath, daemonProgram, '--service=launchd']).ended
  assert.is(launchd.code, 0, 'launchd starts again whatever failed')
  on.at.writeHome('config.json', '{ "http": { "port": 0 } }')
  const ends = Array.from({ length: 7 }, () => ({ at: Date.now(), owner: 'acme.loud' }))
  on.at.writeHome('watchdog.json', JSON.stringify({ ends }))
  const unstable = await on.start().ended
  assert.is(unstable.code, 78, unstable.stderr)
  assert.match(unstable.stderr, 'the watchdog killed the daemon 7 times')
})

test('an abstract socket of a manager works, and a missing socket does not stop the daemon', async () => {
  const on = new Managed(true)
  try {
    await on.listen()
    const { child, ended } = on.start()
    await on.told('READY')
    child.kill('SIGTERM')
    assert.is((await ended).code, 0)
    const deaf = on.start({ NOTIFY_SOCKET: '/nowhere/at/all' })
    await until(
      () => existsSync(join(on.at.home, 'daemon.sock')) || undefined,
      PATIENCE_MS,
      () => 'the daemon',
    )
    assert.is((await on.at.run(['status'])).code, 0)
    deaf.child.kill('SIGTERM')
    assert.is((await deaf.ended).code, 0)
    assert.match(on.at.logTail(), 'the service manager could not be notified')
  } finally {
    await on.remove()
  }
})

const AGENT = join(root, 'test/fixtures/acp-agent.mjs')

/** A daemon with a session whose turn goes on until a file is there. */
async function inTurn(on: Managed, config: object = {}) {
  on.at.writeHome('config.json', JSON.stringify({ http: { port: 0 }, ...config }))
  const command = `${process.execPath} ${AGENT} --load`
  on.at.writeHome('agents/scripted/AGENT.md', `---\nname: scripted\ncommand: '${command}'\n---\nDo as told.\n`)
  const gate = join(on.at.folder, 'gate')
  const work = join(on.at.folder, 'work')
  mkdirSync(work, { recursive: true })
  await on.listen()
  const daemon = on.start()
  await on.told('READY')
  // biome-ignore lint/suspicious/noExplicitAny: the body of any reply
  const ask = async (method: string, url: string, body?: unknown): Promise<any> => {
    const reply = await on.at.request('socket', method, url, body)
    assert.ok(reply.status < 300, `${method} ${url}: ${reply.status} ${reply.text}`)
    return JSON.parse(reply.text)
  }
  const { id: workspace } = (await ask('POST', '/api/workspaces/resolve', { path: work })).workspace
  const { id } = (await ask('POST', '/api/sessions', { agent_name: 'scripted', workspace })).session
  const at = `/api/workspaces/${workspace}/sessions/${id}`
  const text = `say begun\nuntil ${gate}\nsay over`
  const turn = (await ask('POST', `${at}/prompt`, { text })).prompt.new_turn_id
  const events = async () =>
    (await ask('GET', `${at}/events?turn_id=${turn}&limit=1000`)).events as {
      type: string
      content: Readonly<Record<string, unknown>>
    }[]
  await until(
    async () => (await events()).some(({ type }) => type === 'agent_message') || undefined,
    PATIENCE_MS,
    () => `the turn${on.at.logTail()}`,
  )
  return { ...daemon, workspace, events, open: () => writeFileSync(gate, '') }
}

test('a stop by the manager waits for the running turn, extends the timeout and admits no new work', async ({ on }) => {
  const { child, ended, workspace, events, open } = await inTurn(on)
  child.kill('SIGTERM')
  await on.told('EXTEND_TIMEOUT_USEC', 2)
  const stop = on.messages.filter(({ fields }) => !('WATCHDOG' in fields) && !('READY' in fields))
  assert.equal(
    stop.slice(0, 3).map(({ fields }) => Object.keys(fields)[0]),
    ['STOPPING', 'EXTEND_TIMEOUT_USEC', 'EXTEND_TIMEOUT_USEC'],
  )
  assert.is(stop[1]?.fields.STATUS, 'stops: waits for running turns (1)')
  assert.is(child.exitCode, null)
  const body = { agent_name: 'scripted', workspace }
  const refused = await on.at.request('socket', 'POST', '/api/sessions', body)
  assert.equal([refused.status, JSON.parse(refused.text).code], [503, 'draining'])
  open()
  assert.is((await ended).code, 0)
  // The next daemon finds a turn that came to its end.
  const next = on.start()
  await on.told('READY', 2)
  const done = (await events()).filter(({ type }) => type === 'done' || type === 'session_stopped' || type === 'error')
  assert.equal(
    done.map(({ type, content }) => [type, content.status]),
    [['done', 'completed']],
  )
  next.child.kill('SIGTERM')
  assert.is((await next.ended).code, 0)
})

test('a stop by the manager ends within the unit timeout while a turn is running', async ({ on }) => {
  const { child, ended } = await inTurn(on, { daemon: { service: { stop_wait_seconds: 1 } } })
  const printed = await on.at.run(['service', 'install', '--print', '--manager', 'systemd'])
  const seconds = Number(/^TimeoutStopSec=(\d+)$/m.exec(printed.stdout)?.[1])
  assert.ok(seconds > 1, printed.stdout)
  child.kill('SIGTERM')
  const { code, stderr } = await ended
  const end = process.hrtime.bigint()
  assert.is(code, 0, stderr)
  const stopping = on.messages.find(({ fields }) => 'STOPPING' in fields)
  // What systemd counts: the time of the unit, or what was asked for later.
  const limits = on.messages.map(({ at, fields }) => at + Number(fields.EXTEND_TIMEOUT_USEC ?? 0) * 1000)
  const limit = Math.max((stopping?.at ?? 0) + seconds * 1e9, ...limits)
  assert.ok(Number(end) < limit, `${(limit - Number(end)) / 1e9} s were left`)
  assert.match(on.at.logTail(), 'sessions stopped in the middle of a turn: 1')
})

test('a second SIGTERM ends the wait', async ({ on }) => {
  const { child, ended } = await inTurn(on, { daemon: { service: { stop_wait_seconds: 3600 } } })
  child.kill('SIGTERM')
  await on.told('EXTEND_TIMEOUT_USEC')
  child.kill('SIGTERM')
  assert.is((await ended).code, 0)
  assert.match(on.at.logTail(), 'sessions stopped in the middle of a turn: 1')
})

/** Runs a daemon on sockets that another program opened, with the program of systemd where it is there. */
const activator = '/usr/bin/systemd-socket-activate'
const activated = (on: Managed, options: readonly string[]) =>
  on.start({}, [
    activator,
    ...['SVC_HOME', 'PATH', 'HOME'].map(name => `--setenv=${name}`),
    ...options,
    process.execPath,
    daemonProgram,
    '--service=systemd',
  ])

test('sockets of the manager are served and kept; a wrong socket is refused with its reason', async ({ on }) => {
  if (!existsSync(activator)) {
    console.log('not watched: systemd-socket-activate is not there')
    return assert.not(existsSync('/lib/systemd/systemd'), 'systemd comes with it')
  }
  const port = 20_000 + (process.pid % 20_000)
  on.at.writeHome('config.json', JSON.stringify({ http: { port } }))
  const socket = join(on.at.home, 'daemon.sock')
  const other = join(on.at.folder, 'other.sock')
  const good = activated(on, ['-l', socket, '-l', `127.0.0.1:${port}`])
  await until(
    () => existsSync(socket) || undefined,
    PATIENCE_MS,
    () => 'the socket of the manager',
  )
  // What that program makes is open to all.
  chmodSync(socket, 0o600)
  const { ino } = statSync(socket)
  // The file is there a moment before anything listens.
  const answered = async () => {
    const ran = await on.at.run(['status', '--json'])
    return ran.code === 0 ? ran : undefined
  }
  const reply = await until(answered, PATIENCE_MS, () => `an answer${on.at.logTail()}`)
  assert.is(JSON.parse(reply.stdout).daemon.http_port, port)
  assert.is((await on.at.request('tcp', 'GET', '/api/status')).status, 200)
  await on.at.svc('daemon', 'stop')
  assert.is((await good.ended).code, 0)
  assert.is(statSync(socket).ino, ino, 'the file is the manager’s')

  const refused = async (options: readonly string[], why: RegExp, isOpen = false) => {
    const files = options.filter(option => option.startsWith('/'))
    for (const file of files) rmSync(file, { force: true })
    const run = activated(on, options)
    const kick = () => spawnSync('python3', ['-c', KICK, socket, other, String(port)])
    await until(
      () => {
        if (!files.every(file => existsSync(file))) return undefined
        for (const file of isOpen ? [] : files) chmodSync(file, 0o600)
        kick()
        return run.child.exitCode ?? undefined
      },
      PATIENCE_MS,
      () => `a refusal of ${options.join(' ')}`,
    )
    const { code, stderr } = await run.ended
    assert.is(code, 78, stderr)
    assert.match(stderr, why)
  }
  await refused(['-l', other], /other\.sock, but daemon\.socket is .*daemon\.sock/)
  await refused(['-l', socket], /other users can write to; set SocketMode=0600/, true)
  await refused(['-d', '-l', socket], /takes datagrams/)
  await refused(['-l', socket, '-l', other], /is a second Unix socket/)
  on.at.writeHome('config.json', JSON.stringify({ http: { port: port + 1 } }))
  await refused(
    ['-l', `127.0.0.1:${port}`],
    /handed over 127\.0\.0\.1:\d+, but http\.host and http\.port are localhost:\d+/,
  )
})

/** Connects to whatever listens, or sends to it: systemd-socket-activate starts its program then. */
const KICK = `
import socket, sys
for path in sys.argv[1:3]:
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        try:
            s = socket.socket(socket.AF_UNIX, kind); s.connect(path); s.send(b'x')
        except OSError: pass
try: socket.create_connection(('127.0.0.1', int(sys.argv[3])), 1)
except OSError: pass
`

test.run()
