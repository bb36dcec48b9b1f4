import { type ChildProcess, spawn } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { Installed, processesWith, until } from '../../e2e/installed.js'
import { type Chance, chance } from '../library/chance.js'
import type { Attack } from './attack.js'
import { Load } from './kills-load.js'

const AGENT = fileURLToPath(new URL('../../fixtures/acp-agent.mjs', import.meta.url))
const PATIENCE_MS = 60_000

/** What a daemon is doing when it is killed: one of each in turn. */
const STARTS = ['cold', 'used', 'unclean', 'extension', 'agent', 'successor'] as const
type Start = (typeof STARTS)[number]

/** Milliseconds within which a daemon is killed after it was started, and after it was ready. */
const START_MS = 900
const LOAD_MS = 2000

/** An extension that takes a while to load. */
const LATE = `await new Promise(resolve => setTimeout(resolve, 300))
export default { name: 'acme.late', version: '1.0.0', requires: {}, surface: {}, apply() {} }
`

/** A home on which daemons are started and killed while a load is on them. */
class Victim {
  readonly at = new Installed()
  readonly load: Load

  constructor() {
    const root = path.join(this.at.folder, 'work')
    // In the workspace: an agent of a job sees nothing else.
    const ledger = path.join(root, 'ledger')
    const agent = path.join(this.at.home, 'agents', 'slow')
    mkdirSync(root, { recursive: true })
    mkdirSync(agent, { recursive: true })
    const command = `${process.execPath} ${AGENT} --load --slow-init=100 --slow-new=50 --ledger=${ledger}`
    writeFileSync(path.join(agent, 'AGENT.md'), `---\nname: slow\ncommand: '${command}'\n---\nDo as told.\n`)
    writeFileSync(ledger, '')
    const send = async (method: string, url: string, body?: unknown) => {
      const { status, text } = await this.at.request('socket', method, url, body)
      return { status, body: text === '' ? undefined : JSON.parse(text) }
    }
    this.load = new Load({ root, ledger, send })
  }

  /** Brings the home to where this start begins, kills the daemon during it, starts the next one and looks. */
  async kill(start: Start, random: Chance): Promise<string[]> {
    const extension = 'extensions/acme.late'
    if (start === 'extension') {
      this.at.writeHome(
        `${extension}/extension.toml`,
        'name = "acme.late"\nversion = "1.0.0"\napiVersion = 1\nmain = "main.mjs"\n',
      )
      this.at.writeHome(`${extension}/main.mjs`, LATE)
    }
    if (start === 'unclean') await this.#leaveUnclean(random)
    await (start === 'successor' ? this.#killSuccessor(random) : this.#killStart(start, random))

    const next = this.at.start(['daemon', 'start', '--foreground'])
    await next.shows(/daemon is ready/, PATIENCE_MS)
    const faults = await this.#checkProcesses(next.child)
    faults.push(...(await this.load.check()))
    await this.at.run(['daemon', 'stop'])
    await next.ended
    const left = processesWith(`SVC_HOME=${this.at.home}`)
    if (left.length > 0) faults.push(`processes are left after a stop: ${left.join(', ')}`)
    return faults
  }

  async #killStart(start: Start, random: Chance): Promise<void> {
    const daemon = this.at.start(['daemon', 'start', '--foreground'])
    await this.#under(random, async () => {
      if (start === 'agent') await Promise.race([this.load.reaches('initialize'), sleep(PATIENCE_MS / 10)])
      const isServing = random.int(2) === 0
      if (isServing) await daemon.shows(/daemon is ready/, PATIENCE_MS)
      await sleep(random.int(start === 'agent' ? 200 : isServing ? LOAD_MS : START_MS))
      daemon.child.kill('SIGKILL')
      await daemon.ended
    })
  }

  /** A daemon dies with open journals: the next start has to repair. */
  async #leaveUnclean(random: Chance): Promise<void> {
    const daemon = this.at.start(['daemon', 'start', '--foreground'])
    await daemon.shows(/daemon is ready/, PATIENCE_MS)
    await this.#under(random, async () => {
      await sleep(500 + random.int(LOAD_MS))
      daemon.child.kill('SIGKILL')
      await daemon.ended
    })
  }

  /** Kills a daemon that has a successor waiting, as its watchdog does, and then the successor. */
  async #killSuccessor(random: Chance): Promise<void> {
    await this.at.svc('daemon', 'start')
    const { pid } = this.at.discovery
    const [program = '', ...args] = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').slice(0, -1)
    await this.#under(random, async () => {
      const { env, home: cwd } = this.at
      const successor = spawn(program, [...args, '--successor'], { cwd, env, stdio: 'ignore' })
      const ended = new Promise(resolve => successor.once('exit', resolve))
      await sleep(random.int(400))
      process.kill(pid, 'SIGKILL')
      await sleep(random.int(START_MS))
      successor.kill('SIGKILL')
      await ended
    })
  }

  /** Does something while the load runs. */
  async #under(random: Chance, work: () => Promise<void>): Promise<void> {
    const running = this.load.run(random)
    running.catch(() => {})
    await work()
    this.load.stop()
    await running
  }

  /** What an earlier daemon started ends when the next one has started; an agent that this one starts is its child. */
  async #checkProcesses(daemon: ChildProcess): Promise<string[]> {
    const others = () => processesWith(`SVC_HOME=${this.at.home}`).filter(pid => pid !== daemon.pid)
    try {
      await until(
        () => (others().length === 0 ? true : undefined),
        PATIENCE_MS / 4,
        () => '',
      )
      return []
    } catch {
      return [`processes of a killed daemon are left: ${others().join(', ')}`]
    }
  }
}

async function run({ seed, cases, say }: Parameters<Attack['run']>[0]): Promise<readonly string[]> {
  const wrong: string[] = []
  let victim: Victim | undefined
  const acknowledged = { records: 0, prompts: 0, runs: 0 }
  const homes = new Set<Victim>()
  try {
    for (let index = 0; index < cases; index++) {
      const start = STARTS[index % STARTS.length] as Start
      if (start === 'cold' || victim === undefined) {
        await victim?.at.remove()
        victim = new Victim()
      }
      const faults = await victim.kill(start, chance(seed, 'kills', index)).catch(error => [String(error)])
      for (const fault of faults) wrong.push(`kill ${index} (${start}): ${fault}`)
      homes.add(victim)
      // What broke once would break whatever comes after it.
      if (faults.length > 0) {
        await victim.at.remove()
        victim = undefined
      }
    }
  } finally {
    await victim?.at.remove()
  }
  for (const { load } of homes) {
    for (const name of ['records', 'prompts', 'runs'] as const) acknowledged[name] += load.acknowledged[name]
  }
  const { records, prompts, runs } = acknowledged
  say(`acknowledged on ${homes.size} homes: ${records} records, ${prompts} prompts, ${runs} runs`)
  return wrong
}

/** Kills daemons during every kind of start, with writes on the way. */
export const attack: Attack = {
  name: 'kills',
  holds: 'a daemon killed during any start loses nothing that it acknowledged and runs nothing twice',
  size: { ci: 12, full: 120, unit: 'kills' },
  run,
}
