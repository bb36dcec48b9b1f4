import type { ChildProcessWithoutNullStreams } from 'node:child_process'
import { pipeline, type Readable, type Writable } from 'node:stream'
import { type Clock, systemClock, type Timer } from '../../../kernel/plugin.js'
import type { ProcessExit, ProcessHandle, StopOptions } from './api.js'
import { SpawnError } from './error.js'
import type { ProcessSeen } from './inspect.js'
import type { BoundedOutput } from './output/bounded-output.js'
import type { ReapResult } from './reap.js'
import type { ProcessSystem } from './system.js'

const killMs = 5000
/** How long others, outside the group, may hold the output of a stopped process open. */
const drainMs = 1000
const longestPauseMs = 1000

/** A child that has started. */
export type SpawnedChild = ChildProcessWithoutNullStreams & { readonly pid: number }

/** One started process. Its group is watched until it is empty. */
export class ManagedProcess implements ProcessHandle {
  readonly pid: number
  readonly exited: Promise<ProcessExit>
  readonly #real = systemClock()
  /** Resolves when none of the group is left. */
  readonly #empty: Promise<void>
  /** Undefined when none of the group is left: its number may be anybody's then. */
  #settleEmpty: (() => void) | undefined
  /** Resolves when that has been written down as well. */
  readonly #gone: Promise<void>
  #leaderEnded = false
  #stopping: Promise<void> | undefined
  #watch: Timer | undefined
  /** Start times of the group's members when last seen, by pid. Undefined while the leader lives and speaks for all. */
  #members: ReadonlyMap<number, string> | undefined

  constructor(
    private readonly child: SpawnedChild,
    readonly startTime: string,
    private readonly system: ProcessSystem,
    /** It was started for this process, or by one that was. */
    private readonly isMarked: (seen: ProcessSeen) => boolean,
    /** Ends what this one started and is not in its group: no signal to the group reaches it. */
    private readonly endStrays: () => Promise<ReapResult>,
    /** For how long to wait. When to look is real time, for processes know no other. */
    private readonly clock: Clock,
    /** Called once, when the whole group is gone; `stop` waits for it. */
    forget: () => Promise<void>,
    bounded: (stream: 'stdout' | 'stderr', kill: () => void) => BoundedOutput,
  ) {
    this.pid = child.pid
    // Node throws unread output away when a process ends, and one may end before anybody was handed this.
    for (const name of ['stdout', 'stderr'] as const) {
      child[name] = pipeline(
        child[name],
        bounded(name, () => this.kill()),
        () => {},
      )
    }
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
    // A broken pipe is an end like any other, and `exited` tells of it.
    for (const source of [child, child.stdin, child.stdout, child.stderr]) source.on('error', () => {})
  }

  get stdin(): Writable {
    return this.child.stdin
  }

  get stdout(): Readable {
    return this.child.stdout
  }

  get stderr(): Readable {
    return this.child.stderr
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
      this.child.stdin.end()
      await this.#emptyWithin(graceMs)
    }
    if (this.#isLeft) {
      await this.#signal('SIGTERM')
      await this.#emptyWithin(termMs)
    }
    if (this.#isLeft) {
      await this.#signal('SIGKILL')
      await this.#emptyWithin(killMs)
    }
    if (this.#isLeft) {
      const left = `process group ${this.pid} did not end after SIGKILL`
      throw new SpawnError('process_not_ended', left, 'look at its state with ps; it may wait for a disk or a mount')
    }
    const { resisting } = await this.endStrays()
    if (resisting.length > 0) {
      const which = resisting.map(({ pid, label }) => `${pid} (${label})`).join(', ')
      const hint = 'look at them with ps; those of another user only that user or root can end'
      throw new SpawnError('process_not_ended', `what process ${this.pid} started did not end: ${which}`, hint)
    }
    const streams = [this.child.stdin, this.child.stdout, this.child.stderr]
    this.#real.timeout(drainMs, () => streams.forEach(stream => void stream.destroy()), { unref: true })
    await this.#gone
  }

  /** Some of the group may be there. */
  get #isLeft(): boolean {
    return this.#settleEmpty !== undefined
  }

  async #emptyWithin(ms: number): Promise<void> {
    let timer: Timer | undefined
    // No signal that aborts: hundreds may end at once, and each would make an error with its stack.
    const over = new Promise<void>(resolve => {
      timer = this.clock.timeout(ms, resolve)
    })
    await Promise.race([this.#empty, over])
    timer?.cancel()
    await this.#inspectGroup()
  }

  /** Looks again and again, ever less often, until the group is empty. */
  async #watchGroup(pause: number): Promise<void> {
    await this.#inspectGroup()
    if (!this.#isLeft) return
    this.#watch?.cancel()
    const again = () => void this.#watchGroup(Math.min(pause * 2, longestPauseMs))
    this.#watch = this.#real.timeout(pause, again, { unref: true })
  }

  async #signal(name: NodeJS.Signals): Promise<void> {
    // Until Node has told of its end the leader's pid is not free, so the group's number is still ours.
    if (this.#leaderEnded) await this.#inspectGroup()
    if (!this.#isLeft) return
    this.system.signal(-this.pid, name)
    // The end is near: look often again.
    if (this.#leaderEnded) await this.#watchGroup(1)
  }

  /**
   * Finds out whether the group of a leader that has ended is empty, and that it still is the same group. The number of an
   * empty group is given out anew only after all others, which takes longer than a look.
   */
  async #inspectGroup(): Promise<void> {
    if (!this.#leaderEnded || !this.#isLeft) return
    let members: ProcessSeen[] = []
    // A look takes time: a member that forks and ends during it can be missed once.
    for (let looks = 0; looks < 2 && members.length === 0 && this.system.signal(-this.pid, 0); looks++)
      members = await this.#livingMembers()
    // One known member proves that the group was never empty. At the first look the leader has just ended.
    const same =
      this.#members === undefined ||
      members.some(seen => this.#members?.get(seen.pid) === seen.startTime || this.isMarked(seen))
    if (members.length > 0 && same) {
      this.#members = new Map(members.map(({ pid, startTime }) => [pid, startTime]))
      return
    }
    this.#watch?.cancel()
    this.#settleEmpty?.()
    this.#settleEmpty = undefined
  }

  async #livingMembers(): Promise<ProcessSeen[]> {
    return [...(await this.system.look()).values()].filter(({ group, ended }) => group === this.pid && !ended)
  }
}
