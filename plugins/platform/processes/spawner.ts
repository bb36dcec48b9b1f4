import { type ChildProcess, spawn as spawnChild } from 'node:child_process'
import { once } from 'node:events'
import { stat } from 'node:fs/promises'
import { type Clock, type Db, type Report, turn } from '../../../kernel/plugin.js'
import type { Caller, ProcessHandle, SpawnRequest, StopOptions } from './api.js'
import { Cgroup } from './cgroup.js'
import { checkCommand } from './command.js'
import { SpawnError } from './error.js'
import { idsOf, inspectProcess, type ProcessDetails, type ProcessInfo } from './inspect.js'
import { ManagedProcess, type SpawnedChild } from './managed-process.js'
import { lastNumber, markFor, numberIn } from './mark.js'
import { findMarking, homeNumber } from './marking.js'
import { BoundedOutput, OUTPUT_LIMITS, type OutputLimits } from './output/bounded-output.js'
import { Identities, identityOf, Reaper } from './reap.js'
import { hostSystem } from './system.js'
import { ownRows, type ProcessTable } from './tables.js'
import { withoutWithheld } from './withheld-variables.js'

/** A process to start, with the plugin that it belongs to. */
export interface OwnedRequest extends SpawnRequest {
  readonly owner: string
}

/** The only code that starts and signals processes. */
export type Spawner = ReturnType<typeof createSpawner>

export interface SpawnerOptions {
  /** Unique name of this home, different from its copies: processes that carry it are ended at boot. */
  readonly homeId: string
  readonly table: ProcessTable
  readonly clock: Clock
  /** Resolves when everything seen so far is on the disk. */
  durable(): Promise<void>
  /** Allows to move this process into a cgroup of the home: only for a program that runs nothing but one home. */
  readonly cgroup?: Db
  /** Receives faults of processes that flood an output stream. */
  readonly report?: Report
  /** Limits of each output stream of each process. */
  readonly limits?: OutputLimits
}

/** Milliseconds between SIGTERM and SIGKILL for leftovers of a daemon, and for processes that left a group. */
const termMs = { reap: 1000, strays: 500 }

export function createSpawner(options: SpawnerOptions) {
  const { homeId, table, clock, durable, cgroup: stored, report, limits = OUTPUT_LIMITS } = options
  const system = hostSystem()
  const reaper = new Reaper(system)
  const { platform } = process
  const cgroup = stored && platform === 'linux' ? new Cgroup(homeId, system.self, stored) : undefined
  const home = homeNumber(homeId)
  /** Number of this process, if another process of this home started it. */
  const ownNumber = numberIn(inspectProcess(system.self, platform)?.mark ?? 0, home)
  const running = new Map<number, ManagedProcess>()
  const requests = new WeakMap<ProcessHandle, OwnedRequest>()
  /** Processes that descend from none of `running`. That cannot change, because later children are new processes. */
  const strangers = new Identities()
  /** Strangers that no daemon of this home started. */
  const outside = new Identities()
  let marking: ReturnType<typeof findMarking> | undefined
  let enclosed: Promise<unknown> | undefined
  let starting = Promise.resolve()
  let closed = false
  let last = 0

  const refuseWhenClosed = () => {
    if (closed) throw new SpawnError('spawn_failed', 'processes are being stopped', 'start the daemon again first')
  }

  const processId = (number: number) => `${homeId}.${number}`

  const nextNumber = () => {
    do last = (last % lastNumber) + 1
    while (running.has(last) || last === ownNumber)
    return last
  }

  const track = (child: SpawnedChild, request: OwnedRequest, number: number) => {
    const { pid } = child
    // Read at once: Node cannot have waited for the process yet, so the pid cannot be reused.
    const startTime = inspectProcess(pid, platform)?.startTime
    const forget = async () => {
      running.delete(number)
      // A row that stays is found stale at the next boot.
      await recorded.then(() => table.remove(pid, handle.startTime)).catch(() => {})
    }
    const mark = markFor(home, number)
    const ownId = processId(number)
    const isMarked = (proc: ProcessDetails) => proc.mark === mark || proc.processId === ownId
    // On other systems processes that left a group cannot be recognized, and a snapshot would start a process.
    const snapshot = platform === 'linux' ? system.snapshot : async () => new Map()
    const endStrays = () =>
      reaper.endLeft({ rows: [], isMarked, ownChildren: () => false, snapshot, termMs: termMs.strays })
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
    const handle = new ManagedProcess(
      child,
      startTime ?? 'unknown',
      system,
      isMarked,
      endStrays,
      clock,
      forget,
      bounded,
    )
    running.set(number, handle)
    requests.set(handle, request)
    const recorded = startTime
      ? table.add({ pid, startTime, group: pid, owner: request.owner, label: request.label })
      : Promise.reject(new Error(`the start time of process ${pid} cannot be read from /proc: is it mounted?`))
    return { handle, recorded }
  }

  /** The running process of this spawner that a process descends from, or is; undefined without one. */
  const originOf = (pid: number): ProcessHandle | undefined => {
    const handles = [...running.values()]
    const walked: ProcessInfo[] = []
    for (let at = inspectProcess(pid, platform); at && at.pid > 1; at = inspectProcess(at.parent, platform)) {
      const { pid: one, group } = at
      if (strangers.has(at)) break
      const number = numberIn(at.mark, home)
      const found =
        handles.find(handle => handle.pid === one || handle.pid === group) ??
        running.get(number) ??
        running.get(Number(idsOf(one, platform).processId.split(`${homeId}.`)[1]))
      if (found) return found
      walked.push(at)
      if (one === system.self) break
    }
    for (const proc of walked) strangers.add(proc)
    return undefined
  }

  /** Whether a process descends from one of this spawner, and from whose. */
  const descentOf = (pid: number): Caller => {
    const proc = inspectProcess(pid, platform)
    if (pid === system.self) return { status: 'outside' }
    if (!proc || proc.ended) return { status: 'gone' }
    if (outside.has(proc)) return { status: 'outside' }
    const origin = originOf(pid)
    const request = origin && requests.get(origin)
    if (request) return { status: 'started', owner: request.owner, label: request.label }
    if (numberIn(proc.mark, home) > 0 || idsOf(pid, platform).homeId === homeId || cgroup?.has(pid) === true)
      return { status: 'left' }
    outside.add(proc)
    return { status: 'outside' }
  }

  return {
    /** Pid of this process. */
    self: system.self,
    /** Whether it has started a process. */
    get hasStarted() {
      return last > 0
    },
    /**
     * Starts a process that leads a group of its own, when everything seen so far is on the disk; resolves when its row is as well.
     * Throws {@link SpawnError}.
     */
    async spawn(request: OwnedRequest): Promise<ProcessHandle> {
      await checkFolder(request.cwd)
      const [command] = request.argv
      marking ??= findMarking(platform)
      const mark = await marking
      // An empty command is refused by Node itself.
      if (mark && command) orFailure(request, () => checkCommand(command, request.cwd, request.env.PATH))
      await enclosed
      await durable()
      // One start in each turn of the event loop, which it blocks until the program is loaded.
      const mine = starting
      starting = mine.then(turn)
      await mine
      refuseWhenClosed()
      const number = nextNumber()
      const env = { ...withoutWithheld(request.env), SVC_HOME_ID: homeId, SVC_PROCESS_ID: processId(number) }
      const [program = '', ...args] = [...(command ? (mark?.(markFor(home, number)) ?? []) : []), ...request.argv]
      const options = { cwd: request.cwd, env, detached: true, shell: false, stdio: 'pipe' } as const
      const child = orFailure(request, () => spawnChild(program, args, options))
      if (!hasPid(child)) throw failure(request, (await once(child, 'error'))[0])
      const { handle, recorded } = track(child, request, number)
      try {
        await recorded
      } catch (error) {
        handle.kill()
        await handle.stop().catch(() => {})
        throw failure(request, error)
      }
      return handle
    },
    /** Processes whose group is not gone. */
    list: (): ProcessHandle[] => [...running.values()],
    /** Stops all processes, and refuses new ones from now on. Throws an AggregateError when some cannot be ended. */
    async stopAll(options?: StopOptions) {
      closed = true
      const ends = await Promise.allSettled([...running.values()].map(handle => handle.stop(options)))
      const errors = ends.flatMap(end => (end.status === 'rejected' ? [end.reason] : []))
      if (errors.length > 0) throw new AggregateError(errors, `${errors.length} process groups could not be ended`)
    },
    /**
     * Ends leftover processes of this home: at boot those of an earlier daemon, at the end those of this one. They are recognized
     * by their rows, the mark of the spawner, `SVC_HOME_ID` in their environment, the home's cgroup and their parents; never by a
     * pid alone. Rows of missing processes are removed.
     */
    async reap() {
      await enclosed
      await cgroup?.leave()
      const rows = await ownRows(table, homeId)
      let members = new Set<number>()
      const result = await reaper.endLeft({
        rows,
        isMarked: proc => numberIn(proc.mark, home) > 0 || proc.homeId === homeId || members.has(proc.pid),
        ownChildren: () => running.size > 0,
        async snapshot() {
          const processes = await system.walk(() => {})
          members = cgroup?.members() ?? members
          return processes
        },
        killAll: spared => cgroup?.kill(spared),
        termMs: termMs.reap,
      })
      cgroup?.remove()
      const over = new Set([...result.stale, ...result.ended].map(identityOf))
      for (const row of rows) if (over.has(identityOf(row))) await table.remove(row.pid, row.startTime)
      return result
    },
    /** Moves this process into a cgroup of the home, if that is enabled and possible; later children are born in it. */
    async enclose() {
      enclosed = cgroup?.enter()
      await enclosed
    },
    originOf,
    descentOf,
    /** All processes that descend from one of this spawner. */
    async descendants() {
      const all = [...(await system.snapshot()).keys()].map(pid => ({ pid, caller: descentOf(pid) }))
      return all.filter(({ caller: { status } }) => status === 'started' || status === 'left')
    },
  }
}

async function checkFolder(cwd: string): Promise<void> {
  const found = await stat(cwd).catch(() => undefined)
  if (!found?.isDirectory())
    throw new SpawnError('spawn_failed', `the working folder ${cwd} does not exist`, 'create it or choose another')
}

function orFailure<T>(request: SpawnRequest, start: () => T): T {
  try {
    return start()
  } catch (error) {
    throw failure(request, error)
  }
}

function hasPid<C extends ChildProcess>(child: C): child is C & { readonly pid: number } {
  return child.pid !== undefined
}

/** The error omits the arguments, which may contain secrets. */
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
