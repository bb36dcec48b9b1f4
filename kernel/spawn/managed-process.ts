import type { ChildProcessWithoutNullStreams } from 'node:child_process'
import { pipeline, type Readable, type Writable } from 'node:stream'
import { type Clock, systemClock, type Timer } from '../clock.js'
import type { BoundedOutput } from './bounded-output.js'
import { SpawnError } from './error.js'
import type { ProcessInfo } from './inspect.js'
import type { ProcessSystem } from './system.js'

/** How a process ended: one of the two is null. */
export interface ProcessExit {
  readonly code: number | null
  readonly signal: string | null
}

/** A process that the spawner started, and the group that it leads. */
export interface ProcessHandle {
  readonly pid: number
  /** `<boot id>:<ticks since boot>` on Linux, a date elsewhere: with the pid, this names one process for good. */
  readonly startTime: string
  readonly stdin: Writable
  readonly stdout: Readable
  readonly stderr: Readable
  /** The leader's end. Others of its group may live on, and may hold its output open. */
  readonly exited: Promise<ProcessExit>
  /** The leader has not ended. */
  readonly alive: boolean
  /**
   * Ends the group (Behaviour 6.6): closes stdin, waits `graceMs` (2000), sends SIGTERM, waits `termMs` (3000), sends
   * SIGKILL. Also when the leader has ended and others of its group have not. What they started in groups of their own
   * follows, where the system lets us read environments (Linux). Resolves when none is left; rejects with
   * `process_not_ended` when some resist for 5 s more, and can be called again then.
   */
  stop(options?: StopOptions): Promise<void>
  /** Sends SIGKILL to the group now. */
  kill(): void
}

export interface StopOptions {
  /** Milliseconds between the end of stdin and SIGTERM. */
  readonly graceMs?: number
  /** Milliseconds between SIGTERM and SIGKILL. */
  readonly termMs?: number
}

const killMs = 5000
/** How long what has left the group may take after SIGTERM, and after SIGKILL. */
const strayMs = 500
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
    /** Living processes that this one started, or what it started. */
    private readonly descendants: () => Promise<readonly number[]>,
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
        this.#watchGroup(1)
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
    this.#signal('SIGKILL')
  }

  async #end({ graceMs = 2000, termMs = 3000 }: StopOptions): Promise<void> {
    if (this.alive) {
      this.child.stdin.end()
      await this.#emptyWithin(graceMs)
    }
    if (this.#isLeft) {
      this.#signal('SIGTERM')
      await this.#emptyWithin(termMs)
    }
    if (this.#isLeft) {
      this.#signal('SIGKILL')
      await this.#emptyWithin(killMs)
    }
    if (this.#isLeft) {
      const left = `process group ${this.pid} did not end after SIGKILL`
      throw new SpawnError('process_not_ended', left, 'look at its state with ps; it may wait for a disk or a mount')
    }
    await this.#endStrays()
    const streams = [this.child.stdin, this.child.stdout, this.child.stderr]
    this.#real.timeout(drainMs, () => streams.forEach(stream => void stream.destroy()), { unref: true })
    await this.#gone
  }

  /** Ends what was started in groups of their own: no signal to this group reaches it. */
  async #endStrays(): Promise<void> {
    const strays = async () => (await this.descendants()).filter(pid => pid !== this.system.self)
    for (const name of ['SIGTERM', 'SIGKILL'] as const) {
      const found = await strays()
      for (const pid of found) this.system.signal(pid, name)
      for (let left = found.length, waited = 0; left > 0 && waited < strayMs; waited += strayMs / 10) {
        await this.#real.sleep(strayMs / 10)
        left = (await strays()).length
      }
    }
  }

  /** Some of the group may be there. */
  get #isLeft(): boolean {
    return this.#settleEmpty !== undefined
  }

  async #emptyWithin(ms: number): Promise<void> {
    const done = new AbortController()
    const over = this.clock.sleep(ms, done.signal).catch(() => {})
    await Promise.race([this.#empty, over])
    done.abort()
    this.#inspectGroup()
  }

  /** Looks again and again, ever less often, until the group is empty. */
  #watchGroup(pause: number): void {
    this.#inspectGroup()
    if (!this.#isLeft) return
    const again = () => this.#watchGroup(Math.min(pause * 2, longestPauseMs))
    this.#watch = this.#real.timeout(pause, again, { unref: true })
  }

  #signal(name: NodeJS.Signals): void {
    // Until Node has told of its end the leader's pid is not free, so the group's number is still ours.
    if (this.#leaderEnded) this.#inspectGroup()
    if (!this.#isLeft) return
    this.system.signal(-this.pid, name)
    if (!this.#leaderEnded) return
    // The end is near: look often again.
    this.#watch?.cancel()
    this.#watchGroup(1)
  }

  /** Finds out whether the group of a leader that has ended is empty, and that it still is the same group. */
  #inspectGroup(): void {
    if (!this.#leaderEnded || !this.#isLeft) return
    const members = this.system.signal(-this.pid, 0) ? this.#livingMembers() : []
    // A group number is given out anew only after the group was empty: one known member proves that it was not. At the
    // first look the leader has ended in this very turn of the event loop, too short a time for that.
    const same =
      this.#members === undefined ||
      members.some(({ pid, startTime }) => this.#members?.get(pid) === startTime || this.system.isMarked(pid))
    if (members.length > 0 && same) {
      this.#members = new Map(members.map(({ pid, startTime }) => [pid, startTime]))
      return
    }
    this.#watch?.cancel()
    this.#settleEmpty?.()
    this.#settleEmpty = undefined
  }

  #livingMembers(): ProcessInfo[] {
    return [...this.system.inspect().values()].filter(({ group, ended }) => group === this.pid && !ended)
  }
}
