// Proves that an agent in a sandbox reaches nothing outside: `npm run prove:sandbox`. A hostile agent that knows every path tries
// more than fifty ways, over all of what a machine of a person has, made for it: a home with keys, sockets of agents and containers,
// another workspace, a process with a secret in its environment. In a sandbox none may succeed; without one most have to, or the
// proof proves nothing. With the network of the host abstract sockets are reachable, and only they. Exits with 1 otherwise, also
// where there is no bubblewrap.
import { execFileSync, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import fs from 'node:fs'
import net from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { type StartedDaemon, startDaemon } from '../../testing/index.js'

const here = path.dirname(fileURLToPath(import.meta.url))
const LEAST_WITHOUT = 40
const TURN_MS = 120_000
/** Sessions that are timed, with and without. */
const ROUNDS = 7
const median = (all: readonly number[]) => [...all].sort((a, b) => a - b)[Math.floor(all.length / 2)] ?? 0
const ABSTRACT = 'use an abstract socket'

const mark = `svc-hostile-${randomBytes(6).toString('hex')}`
const folder = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), 'svc-prove-sandbox-')))
const at = (...parts: string[]) => path.join(folder, ...parts)
const user = at('user')
const home = at('home')
const other = at('other')
const wrong: string[] = []

function write(file: string, text = `canary-${path.basename(file)}`): void {
  fs.mkdirSync(path.dirname(file), { recursive: true })
  fs.writeFileSync(file, text)
}

/** Sockets that tell a canary to whoever connects. */
const servers: net.Server[] = []
async function listen(where: string): Promise<string> {
  if (!where.startsWith('\0')) fs.mkdirSync(path.dirname(where), { recursive: true })
  const server = net.createServer(socket => {
    socket.on('error', () => {})
    socket.end('canary-socket')
  })
  await new Promise<void>(resolve => server.listen(where, resolve))
  servers.push(server)
  return where
}

function makeUser(): void {
  for (const file of ['.ssh/id_ed25519', '.gnupg/secring.gpg', '.netrc', '.aws/credentials', '.config/gh/hosts.yml'])
    write(path.join(user, file))
  for (const file of ['.local/share/keyrings/login.keyring', '.bash_history', '.bashrc', '.ssh/authorized_keys'])
    write(path.join(user, file))
  write(path.join(other, 'secret'))
  write(at('temporary/secret'))
}

/** A workspace for one run of the agent. */
function makeWorkspace(name: string): string {
  const root = at('work', name)
  fs.mkdirSync(root, { recursive: true })
  execFileSync('git', ['init', '-q', root], { env: { PATH: process.env.PATH, HOME: user } })
  fs.mkdirSync(path.join(root, '.git/hooks'), { recursive: true })
  fs.symlinkSync(other, path.join(root, 'to-other'))
  return root
}

/** Everything in a workspace or a home that the agent planted and that would run code. */
function planted(root: string): string[] {
  const files = ['.git/hooks/post-checkout', '.git/hooks/pre-commit', '.git/hooks/pre-push', '.git/hooks/post-merge']
  const more = ['.git/config', '.git/commondir', '.svc/agents/evil/AGENT.md', '.svc/config.json', '.mcp.json']
  const agents = ['.claude/settings.json', '.codex/config.toml', '.opencode/plugin/evil.js']
  const outside = ['.bashrc', '.ssh/authorized_keys', '.config/systemd/user/evil.service'].map(file =>
    path.join(user, file),
  )
  const elsewhere = [path.join(home, 'extensions/evil/index.mjs'), path.join(other, 'planted')]
  const all = [...files, ...more, ...agents].map(file => path.join(root, file)).concat(outside, elsewhere)
  return all.filter(file => {
    try {
      return fs.readFileSync(file, 'utf8').includes('canary-planted')
    } catch {
      return false
    }
  })
}

function cleanOutside(): void {
  for (const file of [
    path.join(home, 'extensions/evil'),
    path.join(other, 'planted'),
    path.join(user, '.config/systemd'),
  ])
    fs.rmSync(file, { recursive: true, force: true })
  for (const file of ['.bashrc', '.ssh/authorized_keys']) write(path.join(user, file))
}

/** Processes that carry the mark in their command line. */
function left(): string[] {
  return fs.readdirSync('/proc').filter(name => {
    try {
      return /^\d+$/.test(name) && fs.readFileSync(`/proc/${name}/cmdline`, 'latin1').startsWith(mark)
    } catch {
      return false
    }
  })
}

interface Told {
  readonly id: string
  readonly at: string
  readonly text: string
}

/** Opens a session, sends one prompt and returns what the agent said. */
async function turn(daemon: StartedDaemon, workspace: string, sandbox: string, text: string): Promise<Told> {
  const made = await daemon.request('POST', '/api/sessions', {
    workspace_path: workspace,
    agent_name: 'hostile',
    sandbox,
  })
  if (made.status !== 201) throw new Error(`no session: ${JSON.stringify(made.body)}`)
  const { id, workspace_id } = made.body.session
  const base = `/api/workspaces/${workspace_id}/sessions/${id}`
  const { body } = await daemon.request('POST', `${base}/prompt`, { text })
  const end = performance.now() + TURN_MS
  for (;;) {
    const { body: reply } = await daemon.request('GET', `${base}/events?turn_id=${body.prompt.new_turn_id}&limit=1000`)
    const events: readonly { type: string; content: { text?: string } }[] = reply.events
    if (events.some(({ type }) => type === 'done')) {
      return {
        id,
        at: base,
        text: events.flatMap(e => (e.type === 'agent_message' ? (e.content.text ?? '') : [])).join(''),
      }
    }
    const failed = events.find(({ type }) => type === 'error')
    if (failed || performance.now() > end) throw new Error(`the agent did not finish: ${JSON.stringify(failed)}`)
    await new Promise(resolve => setTimeout(resolve, 50))
  }
}

makeUser()
const sockets = {
  ssh: await listen(at('runtime/ssh')),
  bus: await listen(at('runtime/bus')),
  docker: await listen(at('runtime/docker.sock')),
  keyring: await listen(at('runtime/keyring/control')),
  gpg: await listen(path.join(user, '.gnupg/S.gpg-agent')),
}
await listen(`\0${mark}`)
const victim = spawn('sleep', ['600'], { env: { PATH: process.env.PATH, SECRET: 'canary-environ' }, stdio: 'ignore' })
const command = `${process.execPath} ${path.join(here, 'sandbox/hostile-agent.mjs')}`
write(
  path.join(home, 'agents/hostile/AGENT.md'),
  `---\nname: hostile\npermissions: approve-all\ncommand: '${command}'\n---\nTry everything.\n`,
)
const daemon = await startDaemon({
  home,
  config: { sandboxes: { offline: { backend: 'bubblewrap', network: { allow_outbound: false } } } },
  env: { HOME: user, SSH_AUTH_SOCK: sockets.ssh, XDG_RUNTIME_DIR: at('runtime') },
})
try {
  const { body: status } = await daemon.request('GET', '/api/status')
  const tokenFile = ['auth/operator.token', 'operator.token', 'auth.token', 'token']
    .map(file => path.join(home, file))
    .find(file => fs.existsSync(file))
  if (tokenFile === undefined) throw new Error(`no operator token in ${fs.readdirSync(home).join(', ')}`)
  const database = fs.readdirSync(home).find(file => file.endsWith('.db')) ?? ''
  const foreign = await turn(daemon, other, 'none', 'Which is your socket?')
  const target = {
    home,
    user,
    other,
    mark,
    sockets,
    tokenFile,
    database,
    temporary: at('temporary'),
    otherSession: foreign.id,
    otherSocket: foreign.text.trim(),
    victim: victim.pid,
    abstract: mark,
    port: status.daemon?.http_port,
  }
  /** Runs the agent once; returns the ways that succeeded. */
  const attack = async (name: string, sandbox: string) => {
    const root = makeWorkspace(name)
    const { at: session, text } = await turn(daemon, root, sandbox, JSON.stringify({ target }))
    const report = JSON.parse(text.slice(text.indexOf('{'))) as Record<string, string>
    await daemon.request('POST', `${session}/stop`)
    const after = [...planted(root).map(file => `planted ${path.relative(folder, file)}`)]
    if (left().length > 0) after.push('something outlived the session')
    cleanOutside()
    const got = Object.keys(report).filter(way => report[way] === 'GOT')
    return { ways: Object.keys(report), told: report, got: [...got, ...after] }
  }

  const without = await attack('without', 'none')
  console.log(`without a sandbox: ${without.got.length} of ${without.ways.length} ways succeed`)
  if (process.env.VERBOSE) console.log(without.told)
  if (without.got.length < LEAST_WITHOUT)
    wrong.push(`without a sandbox only ${without.got.length} ways succeed, so the proof would prove nothing`)
  for (const [name, allowed] of [
    ['offline', []],
    ['default', [ABSTRACT]],
  ] as const) {
    const { ways, got, told } = await attack(name, name)
    if (process.env.VERBOSE) console.log(told)
    const bad = got.filter(way => !allowed.some(one => one === way))
    console.log(`sandbox ${name}: ${bad.length} of ${ways.length} ways succeed`)
    if (allowed.length > 0) console.log(`  beside abstract sockets, which belong to the network of the host`)
    for (const way of bad) wrong.push(`sandbox ${name}: ${way}`)
  }
  const times: Record<'none' | 'default', number[]> = { none: [], default: [] }
  const small = makeWorkspace('small')
  for (let round = 0; round < ROUNDS; round++) {
    for (const sandbox of ['none', 'default'] as const) {
      const startedAt = performance.now()
      const { at: session } = await turn(daemon, small, sandbox, 'Which is your socket?')
      times[sandbox].push(performance.now() - startedAt)
      await daemon.request('POST', `${session}/stop`)
    }
  }
  const [bare, inside] = [median(times.none), median(times.default)]
  const more = `${Math.round(inside - bare)} ms more, ${(inside / bare).toFixed(2)} times`
  console.log(`first turn: ${Math.round(bare)} ms, in a sandbox ${Math.round(inside)} ms (${more})`)
} finally {
  victim.kill('SIGKILL')
  for (const server of servers) server.close()
  await daemon.stop()
  fs.rmSync(folder, { recursive: true, force: true })
}
for (const text of wrong) console.error(`FAILED ${text}`)
process.exitCode = wrong.length === 0 ? 0 : 1
