import { type ChildProcess, type ChildProcessWithoutNullStreams, spawn as spawnChild } from 'node:child_process'
import { once } from 'node:events'
import { stat } from 'node:fs/promises'
import { type Clock, systemClock } from './clock.js'
import type { Report } from './hooks/index.js'
import { BoundedOutput, OUTPUT_LIMITS, type OutputLimits } from './spawn/bounded-output.js'
import { SpawnError } from './spawn/error.js'
import { environmentHas, inspectProcess, inspectProcesses, processesByEnvironment } from './spawn/inspect.js'
import { ManagedProcess, type ProcessHandle, type SpawnedChild, type StopOptions } from './spawn/managed-process.js'
import type { ProcessTable } from './spawn/process-row.js'
import { endLeft, identityOf, type ReapResult } from './spawn/reap.js'
import type { ProcessSystem } from './spawn/system.js'

export { SpawnError } from './spawn/error.js'
export type { ProcessExit, ProcessHandle, StopOptions } from './spawn/managed-process.js'
export type { ProcessRow, ProcessTable } from './spawn/process-row.js'
export type { ReapResult } from './spawn/reap.js'

/** A process to start (Behaviour 6.3). */
export interface SpawnRequest {
  /** The plugin it is for. */
  readonly owner: string
  /** For whom that plugin starts it, if not for itself: whose faults it makes, and whom work on its output is attributed to. */
  readonly onBehalfOf?: string
  /** What it is, for people. */
  readonly label: string
  /** Command and arguments; never goes through a shell. The command is looked up on the PATH of `env`. */
  readonly argv: readonly string[]
  /** An existing folder. */
  readonly cwd: string
  /** All of its environment, but `SVC_HOME_ID` and `SVC_PROCESS_ID`. */
  readonly env: Readonly<Record<string, string>>
  readonly stdio: 'pipe'
}

/** The one place that starts and signals processes. */
export interface Spawner {
  /** Pid of this process. */
  readonly self: number
  /**
   * Starts a process that leads a group of its own, when everything seen so far is on the disk; resolves when its row is
   * as well. Throws {@link SpawnError}.
   */
  spawn(request: SpawnRequest): Promise<ProcessHandle>
  /** Those whose group is not gone. */
  list(): ProcessHandle[]
  /** Stops all, and refuses to start any from now on. Throws an AggregateError when some cannot be ended. */
  stopAll(options?: StopOptions): Promise<void>
  /**
   * At boot, before anything is started: ends what an earlier daemon of this home left behind, by its rows and by the
   * `SVC_HOME_ID` in the environment of processes; never on a pid alone. Rows of processes that are gone are removed.
   */
  reap(): Promise<ReapResult>
}

export interface SpawnerOptions {
  /** Names this home and no other, copies of it included: whatever carries it is ended at boot. */
  readonly homeId: string
  readonly table: ProcessTable
  readonly clock: Clock
  /** Resolves when everything seen so far is on the disk. */
  durable(): Promise<void>
  /** Told when a process floods one of its streams. */
  readonly report?: Report
  /** Of each output stream of each process. */
  readonly limits?: OutputLimits
}

/** Milliseconds in which looks at the environments of all processes become one: hundreds may end at once. */
const lookMs = 10

export function createSpawner(options: SpawnerOptions): Spawner {
  const { homeId, table, clock, durable, report, limits = OUTPUT_LIMITS } = options
  const system = processSystem(`SVC_HOME_ID=${homeId}`)
  const byProcess = shared(() => processesByEnvironment('SVC_PROCESS_ID', process.platform))
  const running = new Set<ManagedProcess>()
  let closed = false
  let started = 0

  const refuseWhenClosed = () => {
    if (closed) throw new SpawnError('spawn_failed', 'processes are being stopped', 'start the daemon again first')
  }

  const track = (child: SpawnedChild, request: SpawnRequest, id: string) => {
    const { pid } = child
    // At once: Node cannot have waited for it yet, so this pid is this process.
    const startTime = inspectProcess(pid, process.platform)?.startTime
    const forget = async () => {
      running.delete(handle)
      // A row that stays is found stale at the next boot.
      await recorded.then(() => table.remove(pid, handle.startTime)).catch(() => {})
    }
    const descendants = async () => (await byProcess()).get(id) ?? []
    const owner = request.onBehalfOf ?? request.owner
    const bounded = (stream: string, kill: () => void) =>
      new BoundedOutput(owner, limits, (verdict, text) => {
        report?.({
          owner,
          hook: request.onBehalfOf === undefined ? `${stream} of ${request.label}` : stream,
          error: new Error(text),
        })
        if (verdict === 'flooded') kill()
      })
    const handle = new ManagedProcess(child, startTime ?? 'unknown', system, descendants, clock, forget, bounded)
    running.add(handle)
    const recorded = startTime
      ? table.add({ pid, startTime, group: pid, owner: request.owner, label: request.label })
      : Promise.reject(new Error(`the start time of process ${pid} cannot be read`))
    return { handle, recorded }
  }

  return {
    self: system.self,
    async spawn(request) {
      await checkFolder(request.cwd)
      await durable()
      refuseWhenClosed()
      const id = `${homeId}.${++started}`
      const child = start(request, { ...request.env, SVC_HOME_ID: homeId, SVC_PROCESS_ID: id })
      if (!hasPid(child)) throw failure(request, (await once(child, 'error'))[0])
      const { handle, recorded } = track(child, request, id)
      try {
        await recorded
      } catch (error) {
        handle.kill()
        await handle.stop().catch(() => {})
        throw failure(request, error)
      }
      return handle
    },
    list: () => [...running],
    async stopAll(options) {
      closed = true
      const ends = await Promise.allSettled([...running].map(handle => handle.stop(options)))
      const errors = ends.flatMap(end => (end.status === 'rejected' ? [end.reason] : []))
      if (errors.length > 0) throw new AggregateError(errors, `${errors.length} process groups could not be ended`)
    },
    async reap() {
      const rows = table.list()
      const result = await endLeft(system, rows, () => running.size > 0)
      const over = new Set([...result.stale, ...result.ended].map(identityOf))
      for (const row of rows) if (over.has(identityOf(row))) await table.remove(row.pid, row.startTime)
      return result
    },
  }
}

/** One look for all who ask until it is taken. They go on in the turn of that look: what it says is true for them still. */
function shared<T>(look: () => T): () => Promise<T> {
  const real = systemClock()
  let next: Promise<T> | undefined
  return () => {
    next ??= real.sleep(lookMs).then(() => {
      next = undefined
      return look()
    })
    return next
  }
}

function processSystem(mark: string): ProcessSystem {
  const { pid: self, platform } = process
  return {
    self,
    inspect: () => inspectProcesses(platform),
    isMarked: pid => environmentHas(pid, mark, platform),
    signal(target, name) {
      // 0 is our own group, -1 everybody, 1 the system's first process.
      if (!Number.isInteger(target) || Math.abs(target) <= 1) throw new RangeError(`never signals ${target}`)
      try {
        return process.kill(target, name)
      } catch (error) {
        return (error as NodeJS.ErrnoException).code === 'EPERM'
      }
    },
  }
}

async function checkFolder(cwd: string): Promise<void> {
  const found = await stat(cwd).catch(() => undefined)
  if (!found?.isDirectory())
    throw new SpawnError('spawn_failed', `the working folder ${cwd} does not exist`, 'create it or choose another')
}

function start(request: SpawnRequest, env: Record<string, string>): ChildProcessWithoutNullStreams {
  const [command = '', ...args] = request.argv
  try {
    return spawnChild(command, args, { cwd: request.cwd, env, detached: true, shell: false, stdio: 'pipe' })
  } catch (error) {
    throw failure(request, error)
  }
}

function hasPid<C extends ChildProcess>(child: C): child is C & { readonly pid: number } {
  return child.pid !== undefined
}

/** The arguments stay out of it: they may hold secrets. */
function failure({ argv }: SpawnRequest, cause: unknown): SpawnError {
  const command = argv[0] ?? ''
  if ((cause as NodeJS.ErrnoException | undefined)?.code === 'ENOENT') {
    const hint = 'install it, or put its folder on PATH; for a script, check the interpreter in its first line'
    return new SpawnError('command_not_found', `command not found: ${command}`, hint, cause)
  }
  const reason = cause instanceof Error ? cause.message : String(cause)
  const hint = 'check that it is an executable file and that this machine has processes and memory left'
  return new SpawnError('spawn_failed', `cannot start ${command}: ${reason}`, hint, cause)
}
