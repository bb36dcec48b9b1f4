// One whole daemon of the proof: its sessions speak by the API, and what it has is read by the API.
import { mkdirSync } from 'node:fs'
import http from 'node:http'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type StartedDaemon, startDaemon } from '../../../testing/index.js'
import { LEASE } from './offers.js'
import type { Way } from './ways.js'

const CHANNEL = 'team'
/** Sessions of a daemon that speak, each in a thread of its own: two that take turns in one would be stopped as a pair. */
const SPEAKERS = 3
/** One of so many messages is for a peer of another daemon, and wakes it as long as its bounds allow. */
const ADDRESSED = 25
/** What a daemon that was killed, or that has much to do, answers later; the machine may be busy with much else. */
const PASSING_MS = 300_000

interface Peer {
  readonly peer_id: string
  readonly session_id: string | null
  readonly display_name: string
}

/** A message as a daemon has it. */
export interface Said {
  readonly from: string
  readonly text: string
}

// biome-ignore lint/suspicious/noExplicitAny: what a daemon answers is looked at member by member
type Answer = any

export class Speaker {
  /** The workspace of its sessions. */
  workspace = ''
  #speakers: string[] = []
  /** It hears all of the channel, and is addressed by no message. */
  #listener = ''
  readonly #agent = new http.Agent({ keepAlive: true, maxSockets: SPEAKERS + 2 })
  said = 0

  private constructor(
    readonly name: string,
    readonly way: Way,
    private readonly daemon: StartedDaemon,
  ) {}

  static async start(name: string, way: Way): Promise<Speaker> {
    const config = {
      limits: { max_concurrent_agents: 50 },
      network: { remote: { offers: { lease: LEASE } } },
      // The agent of offers is a program of the tests, and notes what it does outside of its workspace.
      defaults: { sandbox: 'none' },
    }
    const speaker = new Speaker(name, way, await startDaemon({ config, through: way.through, patienceMs: PASSING_MS }))
    await speaker.#furnish()
    return speaker
  }

  /** A workspace with a channel and its sessions. */
  async #furnish(): Promise<void> {
    const root = path.join(this.daemon.home, '..', 'work')
    mkdirSync(root)
    await this.svc('workspace', 'add', root, '--name', 'work')
    this.workspace = (await this.ask('GET', '/api/workspaces')).workspaces[0].id
    await this.svc(...this.in('network', 'channels', 'create', CHANNEL, '--agent-names', 'report'))
    const part = { mode: 'live', channel_strategy: 'named', channel_id: CHANNEL }
    for (const what of [...Array.from({ length: SPEAKERS }, (_, i) => `speaker-${i}`), 'listener']) {
      const wanted = { workspace: this.workspace, agent_name: 'report', name: what, network_participation: part }
      const { session } = await this.ask('POST', '/api/sessions', wanted)
      if (what === 'listener') this.#listener = session.id
      else this.#speakers.push(session.id)
    }
  }

  /** Folder of the state of its daemon. */
  get home(): string {
    return this.daemon.home
  }

  /** A command in its workspace. */
  in(...args: string[]): string[] {
    return [...args, '--workspace', this.workspace]
  }

  /** What a command prints. @throws Error of a command that fails */
  async svc(...args: string[]): Promise<string> {
    const { code, stdout, stderr } = await this.daemon.cli(...args)
    if (code !== 0) throw new Error(`${this.name}: svc ${args.join(' ')} ended with ${code}:\n${stdout}${stderr}`)
    return stdout
  }

  /** What `svc doctor` prints; its exit code says whether it found something. */
  async doctor(): Promise<string> {
    return (await this.daemon.cli('doctor')).stdout
  }

  /** What other daemons know it by. */
  identity(): Promise<{ readonly daemon: string; readonly public_key: string; readonly fingerprint: string }> {
    this.#identity ??= this.svc('network', 'identity', '--json').then(text => JSON.parse(text).identity)
    return this.#identity
  }
  #identity: ReturnType<Speaker['identity']> | undefined

  /** Pins the keys of the others, shares the channel and joins the realm, as a person does it. */
  async join(others: readonly Speaker[], realm: string): Promise<void> {
    for (const other of others) {
      const { public_key: key, fingerprint } = await other.identity()
      await this.svc('network', 'peer', 'add', other.name, key, '--fingerprint', fingerprint)
    }
    await this.svc(...this.in('network', 'share', CHANNEL))
    await this.svc('network', 'join', this.way.url, '--realm', realm)
  }

  async remote(): Promise<Answer> {
    return (await this.ask('GET', '/api/network/remote')).remote
  }

  /** Peers of the channel, those of other daemons as well. */
  async peers(): Promise<readonly Peer[]> {
    return (await this.ask('GET', `/api/workspaces/${this.workspace}/network/peers`)).peers
  }

  /** Says so many messages, one session beside the other. What a killed daemon did not answer is said again by the same id. */
  async speak(count: number, pauseMs: number): Promise<void> {
    const everyone = await this.peers()
    // Those that `channels create` started: they may be woken.
    const workers = everyone.filter(one => one.session_id === null && one.display_name === 'report')
    await Promise.all(
      this.#speakers.map(async (session, lane) => {
        for (let n = lane; n < count; n += SPEAKERS) {
          const worker = n % ADDRESSED === 0 ? workers[n % Math.max(workers.length, 1)] : undefined
          await this.#say({
            ...{ id: `msg_${this.name}_${n}`, channel: CHANNEL, kind: 'say', session_id: session },
            thread_id: `thread_${this.name}_${lane}`,
            body: { text: `message ${n} of ${this.name}` },
            ...(worker && { to: worker.peer_id }),
          })
          this.said++
          if (pauseMs > 0) await sleep(pauseMs)
        }
      }),
    )
  }

  async #say(message: object): Promise<void> {
    await this.patiently(() => this.ask('POST', `/api/workspaces/${this.workspace}/network/send`, message))
  }

  /** Again where the daemon was killed meanwhile. */
  async patiently<T>(work: () => Promise<T>): Promise<T> {
    const startedAt = performance.now()
    for (;;) {
      try {
        return await work()
      } catch (error) {
        const { code } = error as NodeJS.ErrnoException
        const isGone = ['ECONNREFUSED', 'ECONNRESET', 'ENOENT', 'EPIPE'].includes(code ?? '')
        if (!isGone || performance.now() - startedAt > PASSING_MS) throw error
        await sleep(20)
      }
    }
  }

  /** How many messages the channel has; what is not known while the daemon is away is what was known before. */
  async count(): Promise<number> {
    const { channels } = await this.ask('GET', `/api/workspaces/${this.workspace}/network/channels`).catch(() => ({
      channels: [],
    }))
    this.#counted = channels.find((one: Answer) => one.channel === CHANNEL)?.message_count ?? this.#counted
    return this.#counted
  }
  #counted = 0

  /** All messages of the channel by their ids. @throws Error where one is there twice */
  async all(): Promise<Map<string, Said>> {
    const found = new Map<string, Said>()
    const base = `/api/workspaces/${this.workspace}/network/channels/${CHANNEL}/threads`
    for await (const { thread_id: thread } of this.#pages(base, 'after', 'threads'))
      for await (const { message_id: id, peer_from: from, text } of this.#pages(
        `${base}/${thread}/messages`,
        'before',
        'messages',
      )) {
        if (found.has(id)) throw new Error(`${this.name} has ${id} twice`)
        found.set(id, { from, text })
      }
    return found
  }

  async *#pages(url: string, place: 'after' | 'before', member: string): AsyncGenerator<Answer> {
    for (let next = ''; ; ) {
      const { page, ...reply } = await this.ask('GET', `${url}?limit=500${next}`)
      yield* reply[member]
      if (!page.has_more) return
      next = `&${place}=${encodeURIComponent(page.next_cursor)}`
    }
  }

  /** Ids of what the listener is given, each as often as it is given. Where its daemon was killed, a prompt starts it again. */
  async heard(): Promise<string[]> {
    const ids: string[] = []
    const asListener = {
      authorization: `Bearer ${this.daemon.token}`,
      'x-service-session-id': this.#listener,
      'x-service-agent': 'report',
    }
    const receive = (query: string) =>
      this.ask('GET', `/api/agent/channels/${CHANNEL}/recv?${query}`, undefined, asListener)
    await this.svc('session', 'prompt', this.#listener, 'listen', '--no-wait')
    await this.#listens()
    for (;;) {
      const last = ids.at(-1)
      const { messages } = await receive(`limit=100${last === undefined ? '' : `&after=${last}`}`)
      if (messages.length === 0) return ids
      ids.push(...messages.map((one: Answer) => one.message_id))
    }
  }

  /** Resolves when the listener runs. */
  async #listens(): Promise<void> {
    const url = `/api/workspaces/${this.workspace}/sessions/${this.#listener}`
    const started = performance.now()
    while ((await this.ask('GET', url)).session.state !== 'active') {
      if (performance.now() - started > PASSING_MS) throw new Error(`${this.name}: the listener does not run`)
      await sleep(50)
    }
  }

  /** How often sessions of the daemon were woken. */
  async wakes(): Promise<number> {
    return (await this.ask('GET', `/api/workspaces/${this.workspace}/network/usage?limit=500`)).details.length
  }

  /** @throws Error of the connection, or one with what the daemon said */
  ask(method: string, url: string, body?: unknown, more: Readonly<Record<string, string>> = {}): Promise<Answer> {
    const text = body === undefined ? undefined : JSON.stringify(body)
    const headers = {
      ...more,
      ...(text !== undefined && { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }),
    }
    const socketPath = path.join(this.daemon.home, 'daemon.sock')
    return new Promise((resolve, reject) => {
      const request = http.request({ socketPath, method, path: url, headers, agent: this.#agent }, response => {
        let answer = ''
        response.setEncoding('utf8').on('data', chunk => {
          answer += chunk
        })
        response.once('error', reject)
        response.once('end', () => {
          if ((response.statusCode ?? 500) < 300) resolve(answer === '' ? undefined : JSON.parse(answer))
          else reject(new Error(`${this.name}: ${method} ${url}: ${response.statusCode} ${answer}`))
        })
      })
      request.once('error', reject)
      request.end(text)
    })
  }

  async kill(): Promise<void> {
    await this.daemon.kill('SIGKILL')
    await this.daemon.restart()
  }

  async stop(): Promise<void> {
    this.#agent.destroy()
    await this.daemon.stop()
    await this.way.close()
  }
}
