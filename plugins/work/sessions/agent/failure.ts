import { readdirSync, readFileSync } from 'node:fs'
import { mkdir, open, readdir, rm } from 'node:fs/promises'
import path from 'node:path'
import type { Clock, Redact, Timer } from '../../../../kernel/plugin.js'
import { redactEnvironment, redactText } from '../../../platform/redaction/api.js'
import type { FailureKind, SessionFailure } from '../api.js'
import { boundText } from '../journal/bounds.js'

/** The end of stderr, and the last lines on stdout that were not messages. */
export interface LastWords {
  readonly stderr: string
  readonly junk: readonly string[]
}

/** Command and environment of a process. */
export interface StartedWith {
  readonly argv: readonly string[]
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
}

/** Reason for which an agent process cannot be used, or can no longer be used. */
export class AgentFailure extends Error {
  override readonly name = 'AgentFailure'
  /** Last output of the process, once it is gone. */
  lastWords: LastWords = { stderr: '', junk: [] }

  /** Set when the process failed before the connection was established. */
  startedWith: StartedWith | undefined

  /** The agent reported that it needs a login. */
  wantsLogin = false

  constructor(
    readonly kind: FailureKind,
    message: string,
    cause?: unknown,
  ) {
    super(message, cause === undefined ? undefined : { cause })
  }

  /** The failure with a hint for people at its end. */
  withHint(hint: string | undefined): AgentFailure {
    if (hint === undefined) return this
    const hinted = new AgentFailure(this.kind, `${this.message}; ${hint}`, this)
    hinted.lastWords = this.lastWords
    hinted.wantsLogin = this.wantsLogin
    return hinted
  }
}

const MAX_BUNDLES = 100
const MAX_SUMMARY = 1000

/** Failures that end the process, as opposed to errors that a live process reports. */
const PROCESS_FAILURES: ReadonlySet<FailureKind> = new Set<FailureKind>([
  'process_exit',
  'protocol_failure',
  'transport_failure',
  'startup_failure',
  'handshake_failure',
])

/** Facts about a failed process for its crash bundle. */
export interface CrashReport {
  readonly sessionId: string
  readonly agentName: string
  readonly workspaceId: string
  readonly turnId: string
  readonly argv: readonly string[]
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
  readonly stderr: string
  readonly junk: readonly string[]
  readonly at: string
}

/** Whether the process itself failed, so that no more output comes from it. */
export function isProcessFailure({ kind }: { readonly kind: FailureKind }): boolean {
  return PROCESS_FAILURES.has(kind)
}

/** A failure for people: redacted and bounded. */
export function plainFailure(failure: AgentFailure, redact: Redact): SessionFailure {
  return { kind: failure.kind, summary: boundText(redactText(redact.text(failure.message)), MAX_SUMMARY) }
}

/** Writes a crash bundle (JSON, mode 0600) into `folder` and returns the failure that names it. */
export async function writeCrashBundle(
  folder: string,
  failure: AgentFailure,
  crash: CrashReport,
  redact: Redact,
): Promise<SessionFailure> {
  const plain = plainFailure(failure, redact)
  const report = redact.value(crash)
  const file = path.join(folder, `${report.at.replace(/[^0-9TZ]/g, '')}-${report.sessionId}.json`)
  const bundle = {
    schema: 'svc.crash-bundle.v1',
    at: report.at,
    session_id: report.sessionId,
    agent_name: report.agentName,
    workspace_id: report.workspaceId,
    ...(report.turnId && { turn_id: report.turnId }),
    failure: { kind: plain.kind, summary: plain.summary },
    process: {
      argv: report.argv.map(redactText),
      cwd: report.cwd,
      env: redactEnvironment(report.env),
      stderr_tail: redactText(report.stderr),
      other_output: report.junk.map(redactText),
    },
  }
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const handle = await open(file, 'wx', 0o600)
  try {
    await handle.writeFile(`${JSON.stringify(bundle, undefined, 2)}\n`)
    await handle.sync()
  } finally {
    await handle.close()
  }
  await prune(folder)
  return { ...plain, crashBundlePath: file }
}

/** Deletes the oldest bundles beyond the limit. File names begin with their time, so they sort by age. */
async function prune(folder: string): Promise<void> {
  const names = (await readdir(folder)).filter(name => name.endsWith('.json')).sort()
  for (const name of names.slice(0, Math.max(0, names.length - MAX_BUNDLES)))
    await rm(path.join(folder, name), { force: true })
}

/** State of an agent's processes in the operating system. */
export interface Pulse {
  /** A process of the group is stopped (state `T`) and continues only after SIGCONT. */
  readonly frozen: boolean
  /** CPU time used so far by the group and its descendants, in milliseconds. */
  readonly cpuMs: number
}

interface Stat {
  readonly pid: number
  readonly parent: number
  readonly group: number
  readonly state: string
  readonly ticks: number
}

/** Linux reports CPU time to user space in hundredths of a second. */
const TICK_MS = 10

/** The pulse of a process group; undefined where the system has no /proc, and when none of the group is left. */
export function pulseOf(group: number): Pulse | undefined {
  const all = readStats()
  const own = all.filter(stat => stat.group === group)
  if (own.length === 0) return undefined
  const family = new Set(own.map(({ pid }) => pid))
  // Tools run in process groups of their own, but their CPU time shows that the agent works.
  for (let size = 0; size < family.size; ) {
    size = family.size
    for (const { pid, parent } of all) if (family.has(parent)) family.add(pid)
  }
  return {
    frozen: own.some(isStopped),
    cpuMs: all.reduce((sum, { pid, ticks }) => (family.has(pid) ? sum + ticks * TICK_MS : sum), 0),
  }
}

/** Process groups with a stopped member (state `T`); empty where that cannot be known. */
export function stoppedGroups(): ReadonlySet<number> {
  return new Set(readStats().flatMap(stat => (isStopped(stat) ? [stat.group] : [])))
}

const isStopped = ({ state }: Stat) => state === 'T' || state === 't'

function readStats(): Stat[] {
  try {
    return readdirSync('/proc').flatMap(name => (/^\d+$/.test(name) ? readStat(Number(name)) : []))
  } catch {
    return []
  }
}

function readStat(pid: number): Stat[] {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The process name is in parentheses and may itself contain spaces and parentheses.
    const [state = '', parent, group, ...rest] = text.slice(text.lastIndexOf(')') + 2).split(' ')
    // utime, stime, and those of reaped children.
    const ticks = rest.slice(8, 12).reduce((sum, field) => sum + Number(field), 0)
    return [{ pid, parent: Number(parent), group: Number(group), state, ticks }]
  } catch {
    return []
  }
}

/** Checks within the time after which an unresponsive process is stale. */
const CHECKS = 3
/** Milliseconds for which the result of a check is reused. */
const FRESH_MS = 500

/** A watched process, with its process group. */
export interface Watched {
  readonly group: number
  /** Receives the result of a check: whether the process runs. */
  looked(runs: boolean): void
}

/**
 * Checks the processes of all sessions with one timer, which exists only while there are processes. It asks the operating system
 * alone: the supervision of a turn finds a process that runs but never answers.
 */
export class ProcessWatch {
  readonly #watched = new Set<Watched>()
  #timer: Timer | undefined
  #checkedAt = Number.NEGATIVE_INFINITY

  /** @param staleAfterMs read before each check */
  constructor(
    private readonly clock: Clock,
    private readonly staleAfterMs: () => number,
  ) {}

  add(watched: Watched): void {
    this.#watched.add(watched)
    if (!this.#timer) this.#wait()
  }

  delete(watched: Watched): void {
    this.#watched.delete(watched)
    if (this.#watched.size === 0) this.close()
  }

  /** Checks now, unless the last check is recent enough. */
  look(): void {
    const now = this.clock.monotonic()
    if (this.#watched.size === 0 || now - this.#checkedAt < FRESH_MS) return
    this.#checkedAt = now
    const stopped = stoppedGroups()
    for (const watched of [...this.#watched]) watched.looked(!stopped.has(watched.group))
  }

  close(): void {
    this.#timer?.cancel()
    this.#timer = undefined
  }

  #wait(): void {
    const checkAgain = () => {
      this.look()
      this.#wait()
    }
    this.#timer = this.clock.timeout(this.staleAfterMs() / CHECKS, checkAgain, { unref: true })
  }
}
