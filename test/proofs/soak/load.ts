import { createHmac } from 'node:crypto'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import http from 'node:http'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { StartedDaemon } from '../../../testing/daemon.js'
import { processesWith, until } from '../../e2e/installed.js'
import { type Chance, chance } from '../library/chance.js'

const AGENT = fileURLToPath(new URL('../../fixtures/acp-agent.mjs', import.meta.url))
const PATIENCE_MS = 120_000
const SECRET = 'the secret of a soak'
/** Rounds that a job, the sessions of its runs, and tasks stay. */
const JOB_ROUNDS = 5
/** Rounds after which a task is deleted: less than the 30 days after which it is archived, where it can only be read. */
const TASK_ROUNDS = 4
/** A deadline of the daemon that a machine with much other work misses; it counts, and is printed, as late. */
const LATE = /no (?:end|answer) within \d+ m?s/
const ARCHIVED = 10

// biome-ignore lint/suspicious/noExplicitAny: the body of any reply
type Body = any

const TURN = [
  'think about it',
  'say some words',
  'update {"sessionUpdate":"tool_call","toolCallId":"c1","title":"List","kind":"read","status":"pending"}',
  'update {"sessionUpdate":"tool_call_update","toolCallId":"c1","status":"completed","rawOutput":"a"}',
  'say last words',
].join('\n')

/** Where one round of the load is. */
interface Round {
  readonly n: number
  readonly random: Chance
}

/** Everything that is asked of the daemon, in rounds; after each of them nothing runs that was started in it. */
export class Load {
  /** Operations by name. */
  readonly counts = new Map<string, number>()
  readonly faults: string[] = []
  #workspace = ''
  #hook = ''
  #job = ''
  #trigger = ''
  readonly #tasksMade: { readonly round: number; readonly id: string }[] = []
  readonly #removed = new Set<string>()
  readonly #archived: string[] = []
  /** Milliseconds by which the clock of the daemon is ahead of that of the proof. */
  ahead = 0

  constructor(
    private readonly daemon: StartedDaemon,
    private readonly folder: string,
    private readonly seed: number,
  ) {}

  get operations(): number {
    return [...this.counts.values()].reduce((sum, count) => sum + count, 0)
  }

  /** The workspace, the agent, the webhook and the hook. */
  async begin(): Promise<void> {
    await this.#writeAgent(path.join(this.daemon.home, 'agents', 'scripted'), 'scripted')
    const root = path.join(this.folder, 'work')
    mkdirSync(root, { recursive: true })
    this.#workspace = (await this.#ask('POST', '/api/workspaces/resolve', { path: root })).workspace.id
    const trigger = await this.#ask('POST', '/api/automation/triggers', {
      ...{ name: 'hook', agent_name: 'scripted', scope: 'workspace', workspace_id: this.#workspace },
      ...{ event: 'webhook', endpoint_slug: 'soak', webhook_secret_value: SECRET, prompt: 'say {{ .Data.n }}' },
      fire_limit: { max: 100_000, window: '1h' },
    })
    this.#hook = trigger.trigger.webhook_endpoint
    this.#trigger = trigger.trigger.id
    await this.#ask('PUT', '/api/settings/hooks/seen', {
      declaration: { name: 'seen', event: 'session.post_create', command: '/bin/true', mode: 'async', matcher: {} },
    })
  }

  /** One round: everything at once, then the end of all that it started. */
  async round(n: number): Promise<void> {
    const round = { n, random: chance(this.seed, n) }
    const work = [
      ...Array.from({ length: 2 }, (_, i) => this.#session({ n, random: chance(this.seed, n, i) })),
      this.#tasks(round),
      this.#jobs(round),
      this.#settings(round),
      this.#extension(),
      this.#looks(),
      ...(n % 2 === 0 ? [this.#crash(round), this.#webhook(round)] : [this.#things(round)]),
      ...(n % 8 === 3 ? [this.#backup(round)] : []),
    ]
    for (const result of await Promise.allSettled(work)) if (result.status === 'rejected') this.#fault(n, result.reason)
    await this.rest().catch(error => this.#fault(n, error))
  }

  /** Only reloads of the extension. */
  async reloads(): Promise<void> {
    for (let n = 0; n < 4; n++) await this.#extension()
  }

  /** Waits until no run is open, no agent works, and no process of the daemon is left. */
  async rest(): Promise<void> {
    let left = ''
    await until(
      async () => {
        for (const status of ['scheduled', 'running']) {
          const { runs } = await this.#look('GET', `/api/automation/runs?status=${status}&limit=1`)
          if (runs.length > 0) {
            left = `run ${runs[0].id} is ${status}`
            return undefined
          }
        }
        for (const state of ['starting', 'active', 'stopping']) {
          const { sessions } = await this.#look('GET', `/api/sessions?state=${state}&limit=1`)
          if (sessions.length > 0) {
            left = `session ${sessions[0].id} is ${state}`
            return undefined
          }
        }
        return true
      },
      PATIENCE_MS,
      () => left,
    )
  }

  /** A turn with a reader; afterwards the session is deleted, or archived and deleted later. */
  async #session({ n, random }: Round): Promise<void> {
    const id = await this.#newSession()
    const at = this.#at(id)
    const stream = await this.daemon.stream(`${at}/stream`)
    try {
      await this.#turn(id, TURN)
      if (random.int(3) === 0) await this.#turn(id, `say again ${n}`)
      await this.#ask('GET', `${at}/transcript`)
    } finally {
      stream.close()
    }
    await this.#ask('POST', `${at}/stop`)
    await this.#stopped(id)
    if (random.int(2) === 0) return void (await this.#ask('DELETE', at))
    await this.#ask('POST', `${at}/archive`)
    this.#archived.push(id)
    if (this.#archived.length > ARCHIVED) await this.#ask('DELETE', this.#at(this.#archived.shift() ?? ''))
  }

  /** The process of an agent is killed in the middle of a turn. */
  async #crash({ random }: Round): Promise<void> {
    const id = await this.#newSession()
    await this.#ask('POST', `${this.#at(id)}/prompt`, { text: 'child\nsay before\nsleep 60000' })
    const [pid] = await until(
      () => {
        const found = processesWith(`SVC_SESSION_ID=${id}`)
        return found.length > 0 ? found : undefined
      },
      PATIENCE_MS,
      () => `a process of session ${id}`,
    )
    await sleep(random.int(300))
    process.kill(pid as number, 'SIGKILL')
    this.#count('crash')
    await this.#stopped(id)
    await this.#ask('DELETE', this.#at(id))
  }

  /** Runs that are claimed, renewed, and completed, failed or canceled. */
  async #tasks({ n, random }: Round): Promise<void> {
    const session = await this.#newSession()
    for (const end of ['complete', 'fail', 'cancel', 'complete'] as const) {
      const { task } = await this.#ask('POST', '/api/tasks', {
        ...{ title: `round ${n}`, scope: 'workspace', workspace: this.#workspace, max_attempts: 1 },
      })
      this.#tasksMade.push({ round: n, id: task.id })
      await this.#ask('POST', `/api/tasks/${task.id}/start`, {})
      const { claim } = await this.#claim(session)
      const run = claim.run.id as string
      await this.#agent(session, `${run}/start`)
      await this.#agent(session, `${run}/heartbeat`)
      if (end === 'complete') await this.#agent(session, `${run}/complete`, { result: { summary: `${random()}` } })
      else if (end === 'fail') await this.#agent(session, `${run}/fail`, { error: 'as planned' })
      else await this.#ask('POST', `/api/task-runs/${run}/cancel`, {})
      // What failed needs attention until somebody says what becomes of it, and is not archived before.
      if (end === 'fail') await this.#ask('POST', `/api/tasks/${task.id}/cancel`, {})
    }
    await this.#ask('DELETE', this.#at(session))
    while (this.#tasksMade[0] && this.#tasksMade[0].round <= n - TASK_ROUNDS)
      await this.#ask('DELETE', `/api/tasks/${this.#tasksMade.shift()?.id}`)
  }

  #claim = (session: string) => this.#agent(session, 'claim-next', { scope: 'workspace' })

  /** A job that fires when the clock has moved, and by hand; it is replaced after some rounds. */
  async #jobs({ n }: Round): Promise<void> {
    if (n % JOB_ROUNDS === 0) {
      await this.#removeSessions(`trigger_id=${this.#trigger}`)
      if (this.#job !== '') {
        await this.#removeSessions(`job_id=${this.#job}`)
        await this.#ask('DELETE', `/api/automation/jobs/${this.#job}`)
      }
      const { job } = await this.#ask('POST', '/api/automation/jobs', {
        ...{ name: `job${n}`, agent_name: 'scripted', scope: 'workspace', workspace_id: this.#workspace },
        ...{ prompt: 'say the job ran', schedule: { mode: 'every', interval: '1h', catch_up_policy: 'coalesce' } },
        fire_limit: { max: 100_000, window: '1h' },
      })
      this.#job = job.id
    }
    await this.#ask('POST', `/api/automation/jobs/${this.#job}/trigger`)
  }

  /** The daemon keeps them with their runs, of which it keeps 1,000. */
  async #removeSessions(of: string): Promise<void> {
    const { runs } = await this.#look('GET', `/api/automation/runs?${of}&limit=100`)
    for (const { session_id: id, status } of runs) {
      if (id === undefined || this.#removed.has(id) || status === 'scheduled' || status === 'running') continue
      this.#removed.add(id)
      await this.#ask('DELETE', this.#at(id))
    }
  }

  async #webhook({ n }: Round): Promise<void> {
    const { port } = JSON.parse(readFileSync(path.join(this.daemon.home, 'daemon.json'), 'utf8'))
    const at = Math.floor((Date.now() + this.ahead) / 1000)
    const body = JSON.stringify({ n })
    const signature = createHmac('sha256', SECRET).update(`${at}.${body}`).digest('hex')
    const headers = {
      'content-type': 'application/json',
      'x-service-webhook-timestamp': String(at),
      'x-service-webhook-signature': `sha256=${signature}`,
    }
    await this.#send({ host: '127.0.0.1', port }, 'POST', this.#hook, body, headers)
  }

  async #settings({ n }: Round): Promise<void> {
    await this.#ask('PATCH', '/api/settings/attention', { config: { toasts: n % 2 === 0 } })
    await this.#ask('PUT', '/api/vault/secrets', { ref: 'vault:network/soak', secret_value: `value ${n} of a secret` })
    await this.#ask('DELETE', '/api/vault/secrets?ref=vault%3Anetwork%2Fsoak')
  }

  async #extension(): Promise<void> {
    await this.#ask('POST', '/api/extensions/acme.soak/reload', {})
    await this.#ask('GET', '/api/ext/acme.soak/ping')
  }

  /** A workspace, an agent and a channel with a message, each deleted again. */
  async #things({ n }: Round): Promise<void> {
    const root = path.join(this.folder, `place${n}`)
    mkdirSync(root)
    const { id } = (await this.#ask('POST', '/api/workspaces/resolve', { path: root })).workspace
    const folder = path.join(this.daemon.home, 'agents', `passing${n}`)
    await this.#writeAgent(folder, `passing${n}`)
    await this.#ask('GET', '/api/agents')
    await this.#ask('POST', `/api/workspaces/${id}/network/channels`, { channel: 'talk' })
    const live = { mode: 'live', channel_strategy: 'named', channel_id: 'talk' }
    const session = await this.#newSession(id, { network_participation: live })
    try {
      await this.#ask('POST', `/api/workspaces/${id}/network/send`, {
        ...{ channel: 'talk', kind: 'say', session_id: session, surface: 'thread', body: { text: `round ${n}` } },
      })
    } finally {
      await this.#ask('DELETE', `/api/workspaces/${id}/sessions/${session}`)
    }
    await this.#ask('DELETE', `/api/workspaces/${id}`)
    rmSync(folder, { recursive: true })
    rmSync(root, { recursive: true })
  }

  /** Streams that are opened and closed, and replies that read much. */
  async #looks(): Promise<void> {
    const urls = ['/api/sessions/catalog-stream', '/api/logs/stream']
    const streams = await Promise.all(urls.map(url => this.daemon.stream(url)))
    for (const url of ['/api/status', '/api/doctor', '/api/observe/overview', '/api/logs?limit=100', '/metrics'])
      await this.#ask('GET', url)
    for (const url of ['/api/notifications/attention', '/api/inbox', '/api/audit?limit=50']) await this.#ask('GET', url)
    for (const stream of streams) stream.close()
  }

  async #backup({ n }: Round): Promise<void> {
    const file = path.join(this.folder, `${n}.tar`)
    await this.#ask('POST', '/api/backups', { output: file })
    await until(
      async () => {
        try {
          rmSync(file)
          return true
        } catch {
          return undefined
        }
      },
      PATIENCE_MS,
      () => `the backup ${file}`,
    )
  }

  async #writeAgent(folder: string, name: string): Promise<void> {
    mkdirSync(folder, { recursive: true })
    const command = `${process.execPath} ${AGENT} --load`
    writeFileSync(path.join(folder, 'AGENT.md'), `---\nname: ${name}\ncommand: '${command}'\n---\nDo as told.\n`)
  }

  async #newSession(workspace = this.#workspace, more: object = {}): Promise<string> {
    const { session } = await this.#ask('POST', '/api/sessions', { workspace, agent_name: 'scripted', ...more })
    return session.id
  }

  async #turn(id: string, text: string): Promise<void> {
    const turn = (await this.#ask('POST', `${this.#at(id)}/prompt`, { text })).prompt.new_turn_id
    await until(
      async () => {
        const { events } = await this.#look('GET', `${this.#at(id)}/events?turn_id=${turn}&limit=1000`)
        return events.some(({ type }: Body) => type === 'done' || type === 'error') || undefined
      },
      PATIENCE_MS,
      () => `the end of turn ${turn} of ${id}`,
    )
  }

  async #stopped(id: string): Promise<void> {
    let state = ''
    await until(
      async () => {
        state = (await this.#look('GET', `/api/sessions/${id}`)).session.state
        return state === 'stopped' || undefined
      },
      PATIENCE_MS,
      () => `session ${id} stops, it is ${state}`,
    )
  }

  #at = (session: string) => `/api/workspaces/${this.#workspace}/sessions/${session}`

  /** As the agent of a session, for which the operator speaks. */
  #agent(session: string, what: string, body: object = {}): Promise<Body> {
    const headers = {
      'content-type': 'application/json',
      authorization: `Bearer ${this.daemon.token}`,
      'x-service-session-id': session,
      'x-service-agent': 'scripted',
    }
    const url = `/api/agent/tasks/${what}`
    return this.#send({ socketPath: `${this.daemon.home}/daemon.sock` }, 'POST', url, JSON.stringify(body), headers)
  }

  /** An operation of the load: it counts, and it has to succeed. */
  async #ask(method: string, url: string, body?: unknown): Promise<Body> {
    const reply = await this.#look(method, url, body)
    this.#count(`${method} ${url.split('?')[0]?.replaceAll(/[a-z]+_[0-9a-zA-Z-]{6,}|\d+/g, '*')}`)
    return reply
  }

  async #look(method: string, url: string, body?: unknown): Promise<Body> {
    const reply = await this.daemon.request(method, url, body)
    if (reply.status >= 300) throw new Error(`${method} ${url}: ${reply.status} ${JSON.stringify(reply.body)}`)
    return reply.body
  }

  #send(to: object, method: string, url: string, body: string, headers: object): Promise<Body> {
    this.#count(`${method} ${url.replaceAll(/[a-z]+_[0-9a-zA-Z-]{6,}/g, '*')}`)
    return new Promise((resolve, reject) => {
      const length = { 'content-length': String(Buffer.byteLength(body)) }
      const sent = http.request(
        { ...to, method, path: url, headers: { ...headers, ...length }, agent: false },
        response => {
          let text = ''
          response.setEncoding('utf8').on('data', chunk => {
            text += chunk
          })
          response.once('error', reject)
          response.once('end', () => {
            const status = response.statusCode ?? 0
            if (status >= 300) reject(new Error(`${method} ${url}: ${status} ${text}`))
            else resolve(text === '' ? undefined : JSON.parse(text))
          })
        },
      )
      sent.once('error', reject)
      sent.end(body)
    })
  }

  #count(name: string): void {
    this.counts.set(name, (this.counts.get(name) ?? 0) + 1)
  }

  #fault(n: number, error: unknown): void {
    const text = error instanceof Error ? error.message : String(error)
    if (LATE.test(text)) this.#count('late')
    else this.faults.push(`round ${n}: ${text}`)
  }
}
