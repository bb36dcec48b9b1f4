import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import http from 'node:http'
import os from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { chance } from '../library/chance.js'
import type { Attack, AttackRun } from './attack.js'

const svc = fileURLToPath(new URL('../../../dist/bin/svc', import.meta.url))
const SIZE_MIB = 64
const LANES = 4
/** Milliseconds in which what has to happen happens on a machine that does other things as well. */
const PATIENCE_MS = 30_000

/** Writes as fast as it can, and goes on when the disk is full, so that it takes whatever becomes free. */
const FILLER = `
const fs = require('node:fs')
const file = fs.openSync(process.argv[1], 'w')
const block = Buffer.alloc(1 << 20, 1)
const go = () => {
  for (let n = 0; n < 8; n++) for (const size of [1 << 20, 4096]) try { fs.writeSync(file, block, 0, size) } catch {}
  setImmediate(go)
}
go()`

interface Reply {
  readonly status: number
  readonly code: string | undefined
}

/** What the daemon has acknowledged: of each record whether it is there. */
class Ledger {
  readonly acknowledged = new Map<string, boolean>()
  /** Records whose last request was refused or not answered: both is right. */
  readonly unknown = new Set<string>()
  readonly statuses = new Map<number, number>()
  readonly wrong: string[] = []
  #next = 0

  constructor(private readonly socket: string) {}

  async ask(method: string, url: string, body?: unknown): Promise<Reply> {
    const reply = await request(this.socket, method, url, body)
    this.statuses.set(reply.status, (this.statuses.get(reply.status) ?? 0) + 1)
    if (reply.status >= 500 && reply.code !== 'disk_full')
      this.wrong.push(`${method} ${url}: ${reply.status} ${reply.code}`)
    return reply
  }

  /** Makes or removes a record; small ones and such of several pages. */
  async write(random: ReturnType<typeof chance>): Promise<Reply> {
    const gone = [...this.acknowledged].find(([id, there]) => there && !this.unknown.has(id))?.[0]
    if (gone !== undefined && random() < 0.1) {
      this.unknown.add(gone)
      const reply = await this.ask('DELETE', `/api/resources/mcp_server/${gone}`, { expected_version: 1 })
      if (reply.status === 204) {
        this.acknowledged.set(gone, false)
        this.unknown.delete(gone)
      }
      return reply
    }
    const id = `d${this.#next++}`
    this.unknown.add(id)
    const spec = {
      name: id,
      command: 'true',
      args: ['x'.repeat(random() < 0.2 ? random.int(20_000) : random.int(500))],
    }
    const sent = { scope: { kind: 'global' }, spec, expected_version: 0 }
    const reply = await this.ask('PUT', `/api/resources/mcp_server/${id}`, sent)
    if (reply.status === 201) {
      this.acknowledged.set(id, true)
      this.unknown.delete(id)
    }
    return reply
  }

  async check(when: string): Promise<void> {
    for (const [id, there] of this.acknowledged) {
      if (this.unknown.has(id)) continue
      const { status } = await this.ask('GET', `/api/resources/mcp_server/${id}`)
      if (status !== (there ? 200 : 404)) this.wrong.push(`${when}: ${id} was acknowledged and is answered ${status}`)
    }
  }
}

async function run({ seed, cases, say }: AttackRun): Promise<readonly string[]> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'svc-disk-'))
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${SIZE_MIB}m`, 'svc-attack', folder], { stdio: 'pipe' })
  } catch (error) {
    say(`not run, mounting is not allowed here: ${(error as Error).message.split('\n')[0]}`)
    await rm(folder, { recursive: true })
    return []
  }
  const home = path.join(folder, 'home')
  const env = { ...process.env, SVC_HOME: home }
  const command = (...args: string[]) => execFileSync(svc, args, { env, stdio: 'pipe', encoding: 'utf8' })
  const ledger = new Ledger(path.join(home, 'daemon.sock'))
  try {
    await mkdir(home, { mode: 0o700 })
    await writeFile(path.join(home, 'config.json'), '{"http":{"port":0}}')
    command('daemon', 'start')
    for (let round = 0; round < cases; round++) {
      const random = chance(seed, 'disk', round)
      const pid = await pidOf(home)
      await fill(folder, ledger, random, async () => {
        // Every third time the daemon starts on the full disk, once without what is kept for it.
        if (round % 3 !== 2) return
        command('daemon', 'stop')
        if (round % 2 === 1) await rm(path.join(home, 'cache', 'reserve'), { force: true })
        command('daemon', 'start')
        if ((await ledger.ask('GET', '/api/status')).status !== 200)
          ledger.wrong.push(`round ${round}: no status after a start`)
      })
      if (round % 3 !== 2 && (await pidOf(home)) !== pid) ledger.wrong.push(`round ${round}: it is another process`)
      const healed = await until(async () => (await ledger.write(random)).status === 201)
      if (!healed) ledger.wrong.push(`round ${round}: nothing is written after space was freed`)
      await ledger.check(`round ${round}`)
      if (ledger.wrong.length > 0) break
    }
    command('daemon', 'stop')
    command('daemon', 'start')
    await ledger.check('after a restart')
    say([...ledger.statuses].map(([status, n]) => `${n} × ${status}`).join(', '))
  } catch (error) {
    ledger.wrong.push(String((error as Error).message))
    say(await readFile(path.join(home, 'logs', 'svc.log'), 'utf8').then(text => text.slice(-2000), String))
  } finally {
    try {
      command('daemon', 'stop')
    } catch {}
    execFileSync('umount', ['-l', folder])
    await rm(folder, { recursive: true, force: true })
  }
  return ledger.wrong
}

/** Writes while the disk is filled, `meanwhile` while it is full, and goes on a while; then frees it. */
async function fill(
  folder: string,
  ledger: Ledger,
  random: ReturnType<typeof chance>,
  meanwhile: () => Promise<void>,
): Promise<void> {
  const filler = path.join(folder, 'filler')
  let over = false
  const lane = async () => {
    while (!over) {
      const { status } = await ledger.write(random).catch(() => ({ status: 0 }))
      if (status !== 201 && status !== 204) await sleep(5)
    }
  }
  let lanes = Promise.all(Array.from({ length: LANES }, lane))
  await sleep(random.int(200))
  const child = spawn(process.execPath, ['-e', FILLER, filler], { stdio: 'ignore' })
  try {
    const refused = () => ledger.statuses.get(507) ?? 0
    const before = refused()
    if (!(await until(async () => refused() > before))) ledger.wrong.push('nothing is refused on a full disk')
    // What reads, and what frees, goes on.
    for (let times = 0; times < 10; times++) {
      for (const url of ['/api/status', '/api/resources?kind=mcp_server', '/api/doctor?only=home.disk']) {
        const { status } = await ledger.ask('GET', url)
        if (status !== 200) ledger.wrong.push(`GET ${url} on a full disk: ${status}`)
      }
      await sleep(50)
    }
    over = true
    await lanes
    await meanwhile()
    over = false
    lanes = Promise.all(Array.from({ length: LANES }, lane))
    await sleep(random.int(1000))
  } finally {
    over = true
    await lanes
    child.kill('SIGKILL')
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
    await rm(filler, { force: true })
  }
}

async function until(done: () => Promise<boolean>): Promise<boolean> {
  for (const end = Date.now() + PATIENCE_MS; Date.now() < end; await sleep(50)) {
    if (await done().catch(() => false)) return true
  }
  return false
}

async function pidOf(home: string): Promise<number> {
  return Number(/^pid (\d+)/m.exec(await readFile(path.join(home, 'daemon.lock'), 'utf8'))?.[1])
}

function request(socketPath: string, method: string, url: string, body?: unknown): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const text = body === undefined ? undefined : JSON.stringify(body)
    // Node frames the body of a DELETE only when it is told its length.
    const length = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text ?? '') }
    const headers = text === undefined ? {} : length
    const sent = http.request({ socketPath, agent: false, method, path: url, headers, timeout: PATIENCE_MS }, reply => {
      let answer = ''
      reply.setEncoding('utf8').on('data', chunk => {
        answer += chunk
      })
      reply.on('end', () => resolve({ status: reply.statusCode ?? 0, code: codeIn(answer) }))
      reply.on('error', reject)
    })
    sent.on('timeout', () => sent.destroy(new Error(`${method} ${url} was not answered`)))
    sent.on('error', reject)
    sent.end(text)
  })
}

function codeIn(text: string): string | undefined {
  try {
    return JSON.parse(text).code
  } catch {
    return undefined
  }
}

/** A program that fills the disk faster than anybody looks. */
export const attack: Attack = {
  name: 'disk',
  holds: 'a full disk ends in refusals: nothing acknowledged is lost, the daemon goes on and heals',
  size: { ci: 6, full: 30, unit: 'rounds of filling and freeing' },
  run,
}
