import { cp, readdir, readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { inFolder, runChild } from '../store/processes.js'
import { Daemon, NAME, writeKit } from './demo-kit.js'
import { withChild } from './kills.js'
import { type Act, acts, after, before, perform } from './life-operations.js'

/** One kill: of an operation at one of its calls. */
export interface LifeKill {
  readonly act: Act
  readonly at: number
}

/** What an extension keeps while it is there, and loses when it is purged, as queries that find it. */
const KEPT: Readonly<Record<string, string>> = {
  'its table': "SELECT name FROM sqlite_master WHERE name = 'demo_kit_note'",
  'its switch': `SELECT name FROM extensions_flag WHERE name = '${NAME}'`,
  'where it came from': `SELECT name FROM extensions_install WHERE name = '${NAME}'`,
  'a binding': `SELECT name FROM extensions_binding WHERE name = '${NAME}'`,
}
const ANY_RECORD = `SELECT id FROM kernel_record WHERE source_id = '${NAME}'`
const EVENTS = { enable: 'extension.enabled', disable: 'extension.disabled', purge: 'extension.removed' } as const

interface World {
  readonly home: string
  readonly pids: string
  readonly daemon: Daemon
  readonly act: Act
}

/** Kills of what the life of an extension is made of, with everything that it has. */
export class Lives {
  /** Kills that came too late: how often a process has the kernel do something is not always the same. */
  missed = 0
  /** How many events tell of an operation before it begins. */
  readonly #before: Partial<Record<Act, number>> = {}

  private constructor(
    private readonly folder: string,
    private readonly script: string,
  ) {}

  /** Runs `use` with everything that a kill needs, which is gone afterwards. */
  static with<T>(use: (lives: Lives) => Promise<T>): Promise<T> {
    return inFolder(folder =>
      withChild('life-child.ts', async script => {
        const lives = new Lives(folder, script)
        await lives.#prepare()
        return use(lives)
      }),
    )
  }

  /** Every call of every operation. */
  async all(): Promise<LifeKill[]> {
    const kills: LifeKill[] = []
    for (const act of acts) {
      const steps = await this.#inHome(act, async (home, pids) => {
        const { lines, errors } = await runChild(this.script, [home, act, pids, 0])
        const steps = Number(lines.at(-1))
        if (!(steps > 0)) throw new Error(`${act} fails without a kill: ${errors}`)
        return steps
      })
      kills.push(...Array.from({ length: steps }, (_, i) => ({ act, at: i + 1 })))
    }
    return kills
  }

  /** What is wrong after a kill and the next start; undefined when all is as before or as wanted, and can be done again. */
  run({ act, at }: LifeKill): Promise<string | undefined> {
    return this.#inHome(act, async (home, pids) => {
      const { code, signal, errors } = await runChild(this.script, [home, act, pids, at])
      if (signal !== 'SIGKILL') {
        this.missed++
        return code === 0 ? undefined : `it fails: ${errors.slice(0, 500)}`
      }
      const daemon = await Daemon.start(home)
      try {
        const wrong = await this.#wrong({ home, pids, daemon, act })
        if (wrong !== undefined) return wrong
        if ((await daemon.state()) === after[act]) return undefined
        await perform(daemon, act, path.join(home, 'extensions'), pids)
        await daemon.until(after[act], async () => (await daemon.state()) === after[act])
        const then = await this.#wrong({ home, pids, daemon, act })
        return then && `done again: ${then}`
      } finally {
        await daemon.close()
      }
    })
  }

  /** What is half when it has had the time to be whole. */
  async #wrong(world: World): Promise<string | undefined> {
    const end = performance.now() + 10_000
    for (;;) {
      const wrong = await this.#half(world)
      if (wrong === undefined || performance.now() > end) return wrong
      await new Promise(resolve => setTimeout(resolve, 10))
    }
  }

  async #half({ home, pids, daemon, act }: World): Promise<string | undefined> {
    const state = await daemon.state()
    // New files are loaded by the next start in any case.
    const wanted = act === 'reload' ? [after[act]] : [before[act], after[act]]
    if (state === undefined || !wanted.some(one => one === state)) return `it is ${state}, not ${wanted.join(' or ')}`
    const problems = [...(await this.#parts(daemon, state, pids)), ...(await this.#leftovers(daemon, home, state))]
    if (act !== 'reload') {
      // Once, not twice and not for nothing.
      const told = this.#told(daemon, act) - (this.#before[act] ?? 0)
      if (told !== (state === after[act] ? 1 : 0)) problems.push(`${told} events tell of it`)
    }
    return problems.length === 0 ? undefined : `${state}, but ${problems.join(', ')}`
  }

  /** Its code, record and process: all of them of that version, or none. */
  async #parts(daemon: Daemon, state: string, pids: string): Promise<string[]> {
    const problems: string[] = []
    for (const version of ['1.0.0', '2.0.0']) {
      const { status } = await daemon.request('GET', `/api/ext/${NAME}/${version}`)
      if (status !== (version === state ? 204 : 404)) problems.push(`the route of ${version} answers ${status}`)
    }
    const { body } = await daemon.request('GET', '/api/resources/skill')
    const skills: string[] = body.records.map(({ spec }: { spec: { version: string } }) => spec.version)
    const running = (await readFile(pids, 'utf8')).split('\n').filter(pid => pid !== '' && isAlive(Number(pid))).length
    const isOn = state.includes('.')
    if (skills.join() !== (isOn ? state : '')) problems.push(`it has skills of ${skills.join() || 'nothing'}`)
    if (running !== (isOn ? 1 : 0)) problems.push(`${running} of its processes run`)
    return problems
  }

  /** What must not be there: of an intent never, of an extension that is gone nothing, of any other all that stays. */
  async #leftovers({ db }: Daemon, home: string, state: string): Promise<string[]> {
    const found = Object.entries(KEPT).flatMap(([what, sql]) => (db.all(sql).length > 0 ? [what] : []))
    const kept = Object.keys(KEPT).filter(what => !found.includes(what))
    const there = (await readdir(path.join(home, 'extensions'))).filter(name => !name.startsWith('.'))
    const staged = await readdir(path.join(home, 'extensions/.staging'))
    return [
      ...(state === 'absent'
        ? [...found, ...there].map(what => `${what} is left`)
        : kept.map(what => `${what} is lost`)),
      ...(staged.length > 0 ? [`${staged.length} folders are left in .staging`] : []),
      ...(db.all('SELECT name FROM extensions_intent').length > 0 ? ['an intent is left'] : []),
      ...(state === 'absent' && db.all(ANY_RECORD).length > 0 ? ['a record is left'] : []),
    ]
  }

  #told({ db }: Daemon, act: keyof typeof EVENTS): number {
    return db.all('SELECT seq FROM kernel_event WHERE name = ?', [EVENTS[act]]).length
  }

  /** Two homes: in one the extension is on, in the other off; in both there is everything that it can have. */
  async #prepare(): Promise<void> {
    const [source, on, off] = ['source', 'on', 'off'].map(name => path.join(this.folder, name)) as [
      string,
      string,
      string,
    ]
    const pids = path.join(this.folder, 'pids')
    writeKit(source, '1.0.0', pids)
    await writeFile(pids, '')
    const url = `/api/extensions/${NAME}`
    const begin = async (home: string, requests: readonly (readonly [string, string, unknown?])[]): Promise<void> => {
      const daemon = await Daemon.start(home)
      for (const [method, path, body] of requests) {
        const { status, body: reply } = await daemon.request(method, path, body)
        if (status >= 300) throw new Error(`${method} ${path}: ${status} ${JSON.stringify(reply)}`)
      }
      for (const act of ['enable', 'disable', 'purge'] as const) {
        if ((home === off) === (act === 'enable')) this.#before[act] = this.#told(daemon, act)
      }
      await daemon.close()
    }
    await begin(on, [
      ['POST', '/api/extensions', { path: source }],
      ['PUT', `${url}/secrets`, { bindings: [{ env_name: 'DEMO_TOKEN', vault_ref: 'env:DEMO_TOKEN' }] }],
      ['POST', `${url}/disable`],
      ['POST', `${url}/enable`],
    ])
    await cp(on, off, { recursive: true })
    await begin(off, [['POST', `${url}/disable`]])
  }

  /** A copy of the home that an operation begins with. */
  #inHome<T>(act: Act, use: (home: string, pids: string) => Promise<T>): Promise<T> {
    return inFolder(async folder => {
      const [home, pids] = [path.join(folder, 'home'), path.join(folder, 'pids')]
      await cp(path.join(this.folder, act === 'enable' ? 'off' : 'on'), home, { recursive: true })
      await writeFile(pids, '')
      // It notes its pids where this copy is looked at.
      writeKit(path.join(home, 'extensions', NAME), '1.0.0', pids)
      return use(home, pids)
    })
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}
