import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { performance } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { Installed, processesWith, until } from '../../e2e/installed.js'
import { chance } from '../library/chance.js'
import type { Attack } from './attack.js'

const CHILD = fileURLToPath(new URL('./floods/child.mjs', import.meta.url))
const WATCH_LOOP = new URL('./floods/watch-loop.mjs', import.meta.url).href

/** Milliseconds of each measurement. */
const MEASURE_MS = 3000
const PATIENCE_MS = 30_000
/** The machine of a test has other work: only a delay that many times the baseline's is a failure here. What is printed is exact. */
const MOST_TIMES = 5
/** A scheduler's slice: below it a ratio measures the machine. */
const NOISE_MS = 10
/** Growth of the daemon's memory beyond which its output is not bounded. */
const MOST_MIB = 300

/** `mcp` is a server that the daemon starts, `web` one over HTTP, which floods the stream that the daemon listens to. */
const ROLES = ['extension', 'agent', 'mcp', 'web', 'hook'] as const

interface Flood {
  readonly role: (typeof ROLES)[number]
  readonly stream: 'stdout' | 'stderr'
  readonly shape: string
}

const SHAPES = ['short lines', 'one endless line', 'binary', 'empty lines']
const FLOODS: readonly Flood[] = ROLES.flatMap(role =>
  (role === 'web' ? (['stdout'] as const) : (['stderr', 'stdout'] as const)).flatMap(stream =>
    [...SHAPES, ...(stream === 'stdout' && (role === 'extension' || role === 'agent') ? ['messages'] : [])].map(
      shape => ({ role, stream, shape }),
    ),
  ),
)

/** A child that will flood. */
interface Child {
  /** Whether the daemon says whose fault it is. */
  named(): Promise<boolean>
  end(): Promise<void>
}

interface Delay {
  readonly p50: number
  readonly p99: number
  readonly max: number
}

/** A daemon whose event loop is watched from within. */
class Daemon {
  readonly at = new Installed()
  readonly #loop = path.join(this.at.folder, 'loop.json')
  readonly #go = path.join(this.at.folder, 'go')
  #workspace = ''

  async start(): Promise<void> {
    mkdirSync(this.#go)
    const root = path.join(this.at.folder, 'work')
    mkdirSync(root)
    const env = { NODE_OPTIONS: `--import ${WATCH_LOOP}`, SVC_ATTACK_LOOP: this.#loop }
    const { code, stderr } = await this.at.run(['daemon', 'start'], undefined, env)
    if (code !== 0) throw new Error(`the daemon did not start: ${stderr}`)
    this.#workspace = (await this.ask('POST', '/api/workspaces/resolve', { path: root })).workspace.id
    const agent = path.join(this.at.home, 'agents', 'quiet')
    mkdirSync(agent, { recursive: true })
    const command = `${process.execPath} ${CHILD} agent ${this.#go} quiet`
    writeFileSync(path.join(agent, 'AGENT.md'), `---\nname: quiet\ncommand: '${command}'\n---\nWait.\n`)
  }

  get pid(): number {
    return this.at.discovery.pid
  }

  // biome-ignore lint/suspicious/noExplicitAny: bodies of any route
  async ask(method: string, url: string, body?: unknown): Promise<any> {
    const { status, text } = await this.at.request('socket', method, url, body)
    if (status >= 400) throw new Error(`${method} ${url}: ${status} ${text}`)
    return text === '' ? undefined : JSON.parse(text)
  }

  /** The delay of the loop since the last call. */
  async delay(): Promise<Delay> {
    rmSync(this.#loop, { force: true })
    process.kill(this.pid, 'SIGUSR2')
    await until(
      () => existsSync(this.#loop) || undefined,
      PATIENCE_MS,
      () => 'the delay of the event loop',
    )
    return JSON.parse(readFileSync(this.#loop, 'utf8'))
  }

  /** The delay in a while of its own, in which the daemon is asked now and again. */
  async measure(): Promise<Delay & { readonly slowest: number }> {
    await this.delay()
    let slowest = 0
    for (const end = performance.now() + MEASURE_MS; performance.now() < end; await sleep(50)) {
      const startedAt = performance.now()
      await this.ask('GET', '/api/status/identity')
      slowest = Math.max(slowest, performance.now() - startedAt)
    }
    return { ...(await this.delay()), slowest }
  }

  memoryMib(): number {
    const [, kib = '0'] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${this.pid}/status`, 'utf8')) ?? []
    return Number(kib) / 1024
  }

  /** Starts a child that will flood when it is told. */
  async child({ role }: Flood, name: string): Promise<Child> {
    switch (role) {
      case 'extension':
        return this.#extension(`acme.${name}`, name)
      case 'agent':
        return this.#session(name)
      case 'hook':
        return this.#hook(name)
      default:
        return this.#server(role, name)
    }
  }

  flood(name: string, { stream, shape }: Flood): void {
    writeFileSync(path.join(this.#go, `${name}.tmp`), '')
    writeFileSync(path.join(this.#go, `${name}.go`), `${stream} ${shape}`)
  }

  /** Whether doctor names an offender. */
  async #tells(names: RegExp): Promise<boolean> {
    const { items } = await this.ask('GET', '/api/doctor?quiet=true')
    return items.some(({ title, message }: { title: string; message: string }) => names.test(`${title} ${message}`))
  }

  async #extension(extension: string, name: string) {
    const argv = JSON.stringify([CHILD, 'extension', this.#go, name])
    const capabilities = '[capabilities]\nprovides = ["tool.provider"]\n'
    this.at.writeHome(
      `extensions/${extension}/extension.toml`,
      `name = "${extension}"\nversion = "1.0.0"\napiVersion = 1\n${capabilities}[subprocess]\ncommand = "node"\nargs = ${argv}\n`,
    )
    await until(
      async () => {
        const { extensions } = await this.ask('GET', '/api/extensions')
        const found = extensions.find((one: { name: string }) => one.name === extension)
        return found?.state === 'active' && found.pid !== undefined ? true : undefined
      },
      PATIENCE_MS,
      () => `the process of ${extension}`,
    )
    const end = async () => {
      await this.ask('POST', `/api/extensions/${extension}/disable`)
    }
    return { named: () => this.#tells(new RegExp(`\\b${extension}\\b`)), end }
  }

  async #session(name: string) {
    const command = `${process.execPath} ${CHILD} agent ${this.#go} ${name}`
    const agent = path.join(this.at.home, 'agents', name)
    mkdirSync(agent, { recursive: true })
    writeFileSync(path.join(agent, 'AGENT.md'), `---\nname: ${name}\ncommand: '${command}'\n---\nFlood.\n`)
    const { session } = await this.ask('POST', '/api/sessions', { workspace: this.#workspace, agent_name: name })
    const at = `/api/workspaces/${this.#workspace}/sessions/${session.id}`
    this.at.request('socket', 'POST', `${at}/prompt`, { text: 'go' }).catch(() => {})
    await until(
      async () =>
        (await this.ask('GET', `/api/sessions/${session.id}`)).session.state === 'active' ? true : undefined,
      PATIENCE_MS,
      () => `session ${session.id} to be active`,
    )
    const end = async () => {
      await this.at.request('socket', 'POST', `${at}/stop`).catch(() => {})
    }
    return { named: () => this.#tells(new RegExp(`\\b(${session.id}|${name})\\b`)), end }
  }

  async #server(role: 'mcp' | 'web', name: string): Promise<Child> {
    const own = role === 'web' ? spawn(process.execPath, [CHILD, role, this.#go, name]) : undefined
    const port = own && Number((await once(own.stdout, 'data'))[0])
    const way = own
      ? { url: `http://127.0.0.1:${port}/mcp` }
      : { command: process.execPath, args: [CHILD, role, this.#go, name] }
    const at = `/api/settings/mcp-servers/${name}`
    await this.ask('PUT', at, { server: { name, ...way } })
    const status = async () => (await this.ask('GET', `${at}?probe=true`)).mcp_server.runtime_status
    await until(
      async () => (await status()).state === 'ready' || undefined,
      PATIENCE_MS,
      () => `the MCP server ${name}`,
    )
    // One that broke a limit is no longer used; of what it printed before, doctor tells.
    const named = async () => {
      const { state, diagnostic } = (await this.ask('GET', at)).mcp_server.runtime_status
      return (state === 'failed' && diagnostic !== undefined) || this.#tells(new RegExp(`\\b${name}\\b`))
    }
    const end = async () => {
      own?.kill('SIGKILL')
      await this.#removed(at)
    }
    return { named, end }
  }

  /** Removes a setting, once nothing uses it any more. */
  async #removed(at: string): Promise<void> {
    await until(
      async () => (await this.at.request('socket', 'DELETE', at)).status === 200 || undefined,
      PATIENCE_MS,
      () => `${at} to be removed`,
    )
  }

  /** A program that is started for an event and floods before it answers; a prompt waits for it. */
  async #hook(name: string): Promise<Child> {
    const command = path.join(this.at.folder, `${name}.sh`)
    writeFileSync(command, `#!/bin/sh\nexec '${process.execPath}' '${CHILD}' hook '${this.#go}' '${name}'\n`, {
      mode: 0o755,
    })
    const at = `/api/settings/hooks/${name}`
    const declaration = { name, event: 'input.pre_submit', mode: 'sync', timeout: '60s', matcher: {}, command }
    await this.ask('PUT', at, { declaration })
    const { session } = await this.ask('POST', '/api/sessions', { workspace: this.#workspace, agent_name: 'quiet' })
    const url = `/api/workspaces/${this.#workspace}/sessions/${session.id}`
    this.at.request('socket', 'POST', `${url}/prompt`, { text: 'go' }).catch(() => {})
    await until(
      () => processesWith(`SVC_HOOK_NAME=${name}`).length > 0 || undefined,
      PATIENCE_MS,
      () => `the program of hook ${name}`,
    )
    const end = async () => {
      for (const pid of processesWith(`SVC_HOOK_NAME=${name}`)) {
        try {
          process.kill(pid, 'SIGKILL')
        } catch {
          // It has ended by itself.
        }
      }
      await this.#removed(at)
      await this.at.request('socket', 'POST', `${url}/stop`).catch(() => {})
    }
    return { named: () => this.#tells(new RegExp(`\\b${name}\\b`)), end }
  }
}

/** A process that is as busy as a flood, and that nobody reads: what remains of a delay beside it is the daemon's own. */
function burn(): ChildProcess {
  return spawn(process.execPath, [CHILD, 'burn', '-'], { stdio: 'ignore' })
}

async function one(daemon: Daemon, flood: Flood, name: string, say: (line: string) => void): Promise<string[]> {
  const what = `${flood.role} ${flood.stream}, ${flood.shape}`
  const wrong: string[] = []
  const { pid } = daemon
  const { named, end } = await daemon.child(flood, name)
  await sleep(500)
  const idle = await daemon.measure()
  const burner = burn()
  const busy = await daemon.measure()
  burner.kill('SIGKILL')
  const memory = daemon.memoryMib()
  daemon.flood(name, flood)
  await sleep(100)
  const under = await daemon.measure()
  const grown = daemon.memoryMib() - memory
  const ms = (value: number) => value.toFixed(1)
  say(
    `${what}: p99 of the loop idle ${ms(idle.p99)} ms, beside a busy process ${ms(busy.p99)} ms, flooded ${ms(under.p99)} ms ` +
      `(${ms(under.p99 / idle.p99)} x idle, longest ${ms(under.max)} ms), slowest answer ${ms(under.slowest)} ms, ${ms(grown)} MiB more`,
  )
  const most = MOST_TIMES * Math.max(idle.p99, busy.p99, NOISE_MS)
  if (under.p99 > most) wrong.push(`${what}: p99 of ${ms(under.p99)} ms, more than ${ms(most)} ms`)
  if (grown > MOST_MIB) wrong.push(`${what}: the daemon grew by ${ms(grown)} MiB`)
  await until(
    async () => (await named()) || undefined,
    PATIENCE_MS,
    () => `${what}: the offender in what the daemon tells`,
  ).catch(error => wrong.push(error.message))
  await end()
  if (daemon.pid !== pid) wrong.push(`${what}: another daemon runs`)
  return wrong
}

export const attack: Attack = {
  name: 'floods',
  holds:
    'agents, extensions, MCP servers and hooks that flood a stream delay nobody, are named, and the daemon stays the same process',
  size: { ci: 8, full: 2 * FLOODS.length, unit: 'floods' },
  async run({ seed, cases, say }) {
    const pick = chance('floods', seed)
    const rest = new Map(ROLES.map(role => [role, [] as Flood[]]))
    // Each of them in its turn, so that few cases have all of them.
    const first = pick.int(ROLES.length)
    const wrong: string[] = []
    const daemon = new Daemon()
    try {
      await daemon.start()
      for (let n = 0; n < cases; n++) {
        const role = ROLES[(first + n) % ROLES.length] as Flood['role']
        const left = rest.get(role) as Flood[]
        if (left.length === 0) left.push(...FLOODS.filter(one => one.role === role))
        const [flood] = left.splice(pick.int(left.length), 1)
        const found = await one(daemon, flood as Flood, `flood${n}`, say).catch(error => [String(error)])
        wrong.push(...found)
      }
    } finally {
      await daemon.at.remove()
    }
    return wrong
  },
}
