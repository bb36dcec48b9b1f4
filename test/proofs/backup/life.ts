import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { isDeepStrictEqual } from 'node:util'
import { Installed, type Running } from '../../e2e/installed.js'
import type { Chance } from '../library/chance.js'

const AGENT = fileURLToPath(new URL('../../fixtures/acp-agent.mjs', import.meta.url))
const PATIENCE_MS = 120_000
const WRITERS = 4
const SESSIONS = 2
/** What a round kills. */
const KILLED = ['nothing', 'daemon', 'backup', 'restore', 'delete'] as const
/** Where a backup goes: into a file that is whole, or into the folder whose backups share chunks. */
const PLACES = ['file', 'folder', 'folder'] as const
/** Backups that the folder keeps, so that chunks are collected in most rounds. */
const KEEP = 3

// biome-ignore lint/suspicious/noExplicitAny: the body of any reply
type Body = any

/** What was acknowledged. */
interface Ledger {
  readonly jobs: Map<string, Body>
  /** Texts of prompts by session. */
  readonly prompts: Map<string, Set<string>>
}

/** A home that is written to without a pause, and its backups. */
export class Life {
  readonly #at = new Installed({ http: { port: 0 }, backup: { keep: KEEP } })
  readonly #ledger: Ledger = { jobs: new Map(), prompts: new Map() }
  readonly #counts = { made: 0, killed: 0, left: 0, deleted: 0, chunks: 0 }
  #daemon: Running | undefined
  #workspace = ''
  #written = 0
  #isWriting = false
  #writers: Promise<unknown> = Promise.resolve()

  get counts(): string {
    const { made, killed, left, deleted, chunks } = this.#counts
    return `${made} backups restored (${left} of a command or daemon that was killed), ${deleted} deleted, up to ${chunks} chunks, ${killed} kills, ${this.#ledger.jobs.size} jobs`
  }

  async begin(): Promise<void> {
    const { home, folder } = this.#at
    const root = path.join(folder, 'work')
    const agent = path.join(home, 'agents', 'scripted')
    for (const each of [root, agent]) mkdirSync(each, { recursive: true })
    const command = `${process.execPath} ${AGENT} --load`
    writeFileSync(path.join(agent, 'AGENT.md'), `---\nname: scripted\ncommand: '${command}'\n---\nDo as told.\n`)
    this.#daemon = await start(this.#at, {})
    this.#workspace = (await this.#ask('POST', '/api/workspaces/resolve', { path: root })).workspace.id
    await this.#makeSessions()
  }

  async end(): Promise<void> {
    this.#isWriting = false
    await this.#writers
    await this.#at.remove()
  }

  /** One backup under load, with a kill or without; what is wrong with it. */
  async round(n: number, luck: Chance): Promise<string[]> {
    const killed = luck.of(KILLED)
    const place = luck.of(PLACES)
    const whole = path.join(this.#at.folder, `${n}.tar`)
    const known = this.#inFolder()
    // The backup of this round, once it is there.
    const made = (): string | undefined => {
      const file = place === 'file' ? whole : this.#inFolder().find(each => !known.includes(each))
      return file !== undefined && existsSync(file) ? file : undefined
    }
    this.#write()
    await sleep(luck.int(300))
    const before: Ledger = {
      jobs: new Map(this.#ledger.jobs),
      prompts: new Map([...this.#ledger.prompts].map(([id, texts]) => [id, new Set(texts)])),
    }
    const backup = this.#at.start(['backup', 'create', ...(place === 'file' ? ['--to', whole] : [])])
    if (killed === 'daemon' || killed === 'backup') {
      await sleep(luck.int(1200))
      const child = killed === 'daemon' ? this.#daemon?.child : backup.child
      child?.kill('SIGKILL')
      this.#counts.killed++
    }
    const { code, stderr } = await backup.ended
    if (killed === 'daemon') await this.#daemon?.ended
    this.#isWriting = false
    await this.#writers
    if (killed === 'daemon') {
      this.#daemon = await start(this.#at, {})
      await this.#makeSessions()
    } else if (killed === 'backup') {
      // The daemon goes on with it.
      for (let tries = 0; made() === undefined && tries < 200; tries++) await sleep(25)
    }
    const file = made()
    if (code === 0 && file === undefined) return ['a backup that was reported is not there']
    if (code !== 0 && killed !== 'daemon' && killed !== 'backup') return [`the backup failed: ${stderr}`]
    if (file === undefined) return this.#checkFolder()
    if (code !== 0) this.#counts.left++
    try {
      const faults = await this.#check(
        file,
        path.join(this.#at.folder, `home-${n}`),
        before,
        killed === 'restore' ? luck : undefined,
      )
      if (killed === 'delete') await this.#delete(luck)
      return [...faults, ...(await this.#checkFolder())]
    } finally {
      rmSync(whole, { force: true })
    }
  }

  /** Backups of the folder, the oldest first. */
  #inFolder(): string[] {
    const folder = path.join(this.#at.home, 'backups')
    const names = existsSync(folder) ? readdirSync(folder) : []
    return names
      .filter(name => /^svc-.*\.tar$/.test(name))
      .sort()
      .map(name => path.join(folder, name))
  }

  /** Deletes a backup of the folder and kills the command. */
  async #delete(luck: Chance): Promise<void> {
    const files = this.#inFolder()
    if (files.length === 0) return
    const command = this.#at.start(['backup', 'delete', luck.of(files)])
    await sleep(luck.int(700))
    command.child.kill('SIGKILL')
    this.#counts.killed++
    await command.ended
    if (this.#inFolder().length < files.length) this.#counts.deleted++
  }

  /** Every backup of the folder has its chunks, whatever was killed. */
  async #checkFolder(): Promise<string[]> {
    const chunks = path.join(this.#at.home, 'backups', 'chunks')
    if (existsSync(chunks)) this.#counts.chunks = Math.max(this.#counts.chunks, readdirSync(chunks).length)
    const faults: string[] = []
    for (const file of this.#inFolder()) {
      const { code, stderr } = await this.#at.run(['backup', 'verify', file])
      if (code !== 0) faults.push(`a backup of the folder is damaged: ${stderr}`)
    }
    return faults
  }

  /** @param luck kills the restore first */
  async #check(file: string, home: string, before: Ledger, luck: Chance | undefined): Promise<string[]> {
    const env = { SVC_HOME: home }
    try {
      if (luck) {
        const restore = this.#at.start(['backup', 'restore', file, '--home', home])
        await sleep(luck.int(1500))
        restore.child.kill('SIGKILL')
        this.#counts.killed++
        await restore.ended
        const isWhole = existsSync(path.join(home, 'held.json')) && !existsSync(path.join(home, 'restoring.json'))
        const isStarted = existsSync(path.join(home, 'restoring.json'))
        if (isStarted) {
          const { code, stderr } = await this.#at.run(['daemon', 'start'], undefined, env)
          if (code === 0 || !stderr.includes('backup restore'))
            return [`a daemon starts in a half restored home: ${stderr}`]
        }
        if (isWhole) rmSync(home, { recursive: true, force: true })
      }
      const restored = await this.#at.run(['backup', 'restore', file, '--home', home])
      if (restored.code !== 0) return [`the restore failed: ${restored.stderr}`]
      const verified = await this.#at.run(['db', 'verify'], undefined, env)
      if (verified.code !== 0) return [`db verify: ${verified.stdout} ${verified.stderr}`]
      writeFileSync(path.join(home, 'config.json'), '{"http":{"port":0}}')
      const daemon = await start(this.#at, env)
      try {
        this.#counts.made++
        return await this.#compare(path.join(home, 'daemon.sock'), before)
      } finally {
        daemon.child.kill('SIGTERM')
        await daemon.ended
      }
    } finally {
      rmSync(home, { recursive: true, force: true })
    }
  }

  async #compare(socket: string, before: Ledger): Promise<string[]> {
    const faults: string[] = []
    const of = async (url: string, at: string): Promise<Body> => (await ask(at, 'GET', url)).body
    const own = path.join(this.#at.home, 'daemon.sock')
    const { held } = await of('/api/backups/hold', socket)
    if (held !== true) faults.push('the restored home is not held')
    const [there, here] = await Promise.all([allJobs(socket), allJobs(own)])
    for (const [id, job] of before.jobs)
      if (!isDeepStrictEqual(there.get(id), job))
        faults.push(`job ${id} was acknowledged and is ${JSON.stringify(there.get(id))}`)
    for (const [id, job] of there)
      if (!isDeepStrictEqual(here.get(id), job))
        faults.push(`job ${id} differs: ${JSON.stringify([job, here.get(id)])}`)
    const workspaces = await Promise.all([socket, own].map(at => of('/api/workspaces', at)))
    if (!isDeepStrictEqual(workspaces[0], workspaces[1])) faults.push('the workspaces differ')
    for (const [id, texts] of before.prompts) {
      const [copy, original] = await Promise.all([socket, own].map(at => eventsOf(at, this.#workspace, id)))
      const copied = new Set(
        (copy as Body[]).filter(({ type }) => type === 'user_message').map(({ content }) => content.text),
      )
      const missing = [...texts].filter(text => !copied.has(text))
      if (missing.length > 0) faults.push(`session ${id} lacks prompts that were acknowledged: ${missing}`)
      // A repair appends what a crash left open, and nothing else differs.
      const differs = (copy as Body[]).findIndex((event, at) => !isDeepStrictEqual(event, (original as Body[])[at]))
      const rest = differs < 0 ? [] : (copy as Body[]).slice(differs)
      const repair = ['session_stopped', 'error', 'tool_result', 'user_message']
      const odd = rest.find(({ type }) => !repair.includes(type))
      if (odd) faults.push(`session ${id} has another event: ${JSON.stringify(odd)}`)
    }
    return faults
  }

  /** Writes jobs and prompts without a pause. */
  #write(): void {
    this.#isWriting = true
    const jobs = Array.from({ length: WRITERS }, async () => {
      while (this.#isWriting) {
        const id = `job_${++this.#written}`
        const schedule = { mode: 'every', interval: '1h' }
        const spec = { name: id, agent_name: 'scripted', prompt: 'x'.repeat(500), schedule, enabled: false }
        const scope = { kind: 'workspace', id: this.#workspace }
        const body = { expected_version: 0, scope, spec }
        const { record } = await this.#ask('PUT', `/api/resources/automation.job/${id}`, body)
        this.#ledger.jobs.set(id, record)
      }
    })
    const prompts = [...this.#ledger.prompts].map(async ([id, texts]) => {
      while (this.#isWriting) {
        const text = `say ${'word '.repeat(30)}${++this.#written}`
        await this.#ask('POST', `/api/workspaces/${this.#workspace}/sessions/${id}/prompt`, { text })
        await sleep(20)
        const events = await eventsOf(path.join(this.#at.home, 'daemon.sock'), this.#workspace, id)
        if (events.some(({ type, content }) => type === 'user_message' && content.text === text)) texts.add(text)
      }
    })
    // A kill cuts them off.
    this.#writers = Promise.allSettled([...jobs, ...prompts])
  }

  async #makeSessions(): Promise<void> {
    this.#ledger.prompts.clear()
    for (let n = 0; n < SESSIONS; n++) {
      const body = { agent_name: 'scripted', workspace: this.#workspace }
      const { session } = await this.#ask('POST', '/api/sessions', body)
      this.#ledger.prompts.set(session.id, new Set())
    }
  }

  async #ask(method: string, url: string, body?: unknown): Promise<Body> {
    const reply = await ask(path.join(this.#at.home, 'daemon.sock'), method, url, body)
    if (reply.status >= 300) throw new Error(`${method} ${url}: ${reply.status} ${JSON.stringify(reply.body)}`)
    return reply.body
  }
}

async function start(at: Installed, env: Readonly<Record<string, string>>): Promise<Running> {
  const daemon = at.start(['daemon', 'start', '--foreground'], at.folder, env)
  await daemon.shows(/daemon is ready/, PATIENCE_MS)
  return daemon
}

async function allJobs(socket: string): Promise<Map<string, Body>> {
  const { status, body } = await ask(socket, 'GET', '/api/resources/automation.job')
  if (status >= 300) throw new Error(JSON.stringify(body))
  return new Map(body.records.map((record: Body) => [record.id, record]))
}

async function eventsOf(socket: string, workspace: string, id: string): Promise<Body[]> {
  const events: Body[] = []
  for (let after = 0; ; ) {
    const url = `/api/workspaces/${workspace}/sessions/${id}/events?limit=500&after_sequence=${after}`
    const { status, body } = await ask(socket, 'GET', url)
    if (status >= 300) throw new Error(JSON.stringify(body))
    events.push(...body.events)
    const last = body.events.at(-1)?.sequence
    if (body.events.length < 500 || last === undefined) return events
    after = last
  }
}

function ask(socketPath: string, method: string, url: string, body?: unknown): Promise<{ status: number; body: Body }> {
  return new Promise((resolve, reject) => {
    const text = body === undefined ? undefined : JSON.stringify(body)
    const headers = text === undefined ? {} : { 'content-type': 'application/json' }
    const call = request({ socketPath, method, path: url, headers }, reply => {
      const pieces: Buffer[] = []
      reply.on('data', piece => pieces.push(piece))
      reply.on('error', reject)
      reply.on('end', () => {
        const whole = Buffer.concat(pieces).toString()
        resolve({ status: reply.statusCode ?? 0, body: whole === '' ? undefined : JSON.parse(whole) })
      })
    })
    call.on('error', reject)
    call.end(text)
  })
}
