import type { ChildProcessWithoutNullStreams } from 'node:child_process'
import { pipeline, type Readable, type Writable } from 'node:stream'
import { type Clock, systemClock, type Timer } from '../../../kernel/plugin.js'
import type { ProcessExit, ProcessHandle, StopOptions } from './api.js'
import { SpawnError } from './error.js'
import type { ProcessDetails } from './inspect.js'
import type { BoundedOutput } from './output/bounded-output.js'
import type { ReapResult } from './reap.js'
import type { ProcessSystem } from './system.js'

const killMs = 5000
/** Milliseconds until the output of a stopped process is closed, which processes outside of its group may hold open. */
const drainMs = 1000
const longestPauseMs = 1000

/** A child that has started. */
export type SpawnedChild = ChildProcessWithoutNullStreams & { readonly pid: number }

/** One started process. Its group is watched until it is empty. */
export class ManagedProcess implements ProcessHandle {
  readonly pid: number
  readonly stdin: Writable
  readonly stdout: Readable
  readonly stderr: Readable
  readonly exited: Promise<ProcessExit>
  readonly #real = systemClock()
  /** Resolves when the group is empty. */
  readonly #empty: Promise<void>
  /** Undefined when the group is empty: its number may then be reused. */
  #settleEmpty: (() => void) | undefined
  /** Resolves when the removal of its row is durable as well. */
  readonly #gone: Promise<void>
  #leaderEnded = false
  #stopping: Promise<void> | undefined
  #watch: Timer | undefined
  /**
   * Start times of the group's members at the last check, by pid. Undefined while the leader lives, because its group's number
   * cannot be reused then.
   */
  #members: ReadonlyMap<number, string> | undefined

  constructor(
    child: SpawnedChild,
    readonly startTime: string,
    private readonly system: ProcessSystem,
    /** Whether a process was started by this one, directly or not. */
    private readonly isMarked: (proc: ProcessDetails) => boolean,
    /** Ends descendants that left the group, which signals to the group do not reach. */
    private readonly endStrays: () => Promise<ReapResult>,
    /** Clock for waits. Looks at processes use real time, because processes do. */
    private readonly clock: Clock,
    /** Called once when the whole group is gone; `stop` waits for it. */
    forget: () => Promise<void>,
    bounded: (stream: 'stdout' | 'stderr', kill: () => void) => BoundedOutput,
  ) {
    const kill = () => this.kill()
    const output = (name: 'stdout' | 'stderr') => pipeline(child[name], bounded(name, kill), () => {})
    this.pid = child.pid
    this.stdin = child.stdin
    // Node discards unread output when a process ends, which may happen before the caller has the handle.
    this.stdout = output('stdout')
    this.stderr = output('stderr')
    this.#empty = new Promise(resolve => {
      this.#settleEmpty = resolve
    })
    this.#gone = this.#empty.then(forget)
    this.exited = new Promise(resolve => {
      child.once('exit', (code, signal) => {
        this.#leaderEnded = true
        resolve({ code, signal })
        void this.#watchGroup(1)
      })
    })
    // A broken pipe is a normal end, which `exited` reports.
    for (const source of [child, this.stdin, this.stdout, this.stderr]) source.on('error', () => {})
  }

  get alive(): boolean {
    return !this.#leaderEnded
  }

  stop(options: StopOptions = {}): Promise<void> {
    this.#stopping ??= this.#end(options).catch(error => {
      this.#stopping = undefined
      throw error
    })
    return this.#stopping
  }

  kill(): void {
    void this.#signal('SIGKILL')
  }

  async #end({ graceMs = 2000, termMs = 3000 }: StopOptions): Promise<void> {
    if (this.alive) {
      this.stdin.end()
      await this.#emptyWithin(graceMs)
    }
    for (const [signal, ms] of [['SIGTERM', termMs] as const, ['SIGKILL', killMs] as const]) {
      if (!this.#isLeft) break
      await this.#signal(signal)
      await this.#emptyWithin(ms)
    }
    if (this.#isLeft) {
      const left = `process group ${this.pid} did not end after SIGKILL`
      throw new SpawnError('process_not_ended', left, 'inspect its state with ps; it may wait for a disk or a mount')
    }
    const { resisting } = await this.endStrays()
    if (resisting.length > 0) {
      const which = resisting.map(({ pid, label }) => `${pid} (${label})`).join(', ')
      const hint = 'inspect them with ps; only their user or root can end processes of another user'
      throw new SpawnError('process_not_ended', `processes started by process ${this.pid} did not end: ${which}`, hint)
    }
    const streams = [this.stdin, this.stdout, this.stderr]
    this.#real.timeout(drainMs, () => streams.forEach(stream => void stream.destroy()), { unref: true })
    await this.#gone
  }

  /** Whether the group may have members. */
  get #isLeft(): boolean {
    return this.#settleEmpty !== undefined
  }

  async #emptyWithin(ms: number): Promise<void> {
    let timer: Timer | undefined
    // No AbortSignal: hundreds may end at once, and each abort would create an error with its stack.
    const over = new Promise<void>(resolve => {
      timer = this.clock.timeout(ms, resolve)
    })
    await Promise.race([this.#empty, over])
    timer?.cancel()
    await this.#inspectGroup()
  }

  /** Checks the group repeatedly, with growing pauses, until it is empty. */
  async #watchGroup(pause: number): Promise<void> {
    await this.#inspectGroup()
    if (!this.#isLeft) return
    this.#watch?.cancel()
    const again = () => void this.#watchGroup(Math.min(pause * 2, longestPauseMs))
    this.#watch = this.#real.timeout(pause, again, { unref: true })
  }

  async #signal(name: NodeJS.Signals): Promise<void> {
    // Until Node reports its end the leader's pid is not reused, so the group's number is still valid.
    if (this.#leaderEnded) await this.#inspectGroup()
    if (!this.#isLeft) return
    this.system.signal(-this.pid, name)
    // The end is near: check often again.
    if (this.#leaderEnded) await this.#watchGroup(1)
  }

  /**
   * Finds out whether the group of an ended leader is empty, and still the same group. The number of an empty group is only
   * reused after all others, which takes longer than a check.
   */
  async #inspectGroup(): Promise<void> {
    if (!this.#leaderEnded || !this.#isLeft) return
    let members: ProcessDetails[] = []
    // A check can miss a member that forks and ends meanwhile.
    for (let looks = 0; looks < 2 && members.length === 0 && this.system.signal(-this.pid, 0); looks++)
      members = await this.#livingMembers()
    // One known member proves that the group was never empty. At the first check the leader has just ended.
    const same =
      this.#members === undefined ||
      members.some(proc => this.#members?.get(proc.pid) === proc.startTime || this.isMarked(proc))
    if (members.length > 0 && same) {
      this.#members = new Map(members.map(({ pid, startTime }) => [pid, startTime]))
      return
    }
    this.#watch?.cancel()
    this.#settleEmpty?.()
    this.#settleEmpty = undefined
  }

  async #livingMembers(): Promise<ProcessDetails[]> {
    return [...(await this.system.snapshot()).values()].filter(({ group, ended }) => group === this.pid && !ended)
  }
}
