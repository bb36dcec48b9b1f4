import { type ChildProcess, type ChildProcessWithoutNullStreams, spawn as spawnChild } from 'node:child_process'
import { once } from 'node:events'
import { stat } from 'node:fs/promises'
import { type Clock, type Report, turn } from '../../../kernel/plugin.js'
import type { Caller, ProcessHandle, SpawnRequest, StopOptions } from './api.js'
import { Cgroup, type CgroupPlace } from './cgroup.js'
import { checkCommand } from './command.js'
import { SpawnError } from './error.js'
import { idsOf, inspectProcess, type ProcessInfo, type ProcessSeen } from './inspect.js'
import { ManagedProcess, type SpawnedChild } from './managed-process.js'
import { lastNumber, markFor, numberIn } from './mark.js'
import { findMarking, homeNumber } from './marking.js'
import { BoundedOutput, OUTPUT_LIMITS, type OutputLimits } from './output/bounded-output.js'
import { Identities, identityOf, Reaper } from './reap.js'
import { hostSystem } from './system.js'
import { ownRows, type ProcessTable } from './tables.js'
import { withoutWithheld } from './withheld.js'

/** A process to start, and the plugin that it is for. */
export interface OwnedRequest extends SpawnRequest {
  readonly owner: string
}

/** The one place that starts and signals processes. */
export type Spawner = ReturnType<typeof createSpawner>

export interface SpawnerOptions {
  /** Names this home and no other, copies of it included: whatever carries it is ended at boot. */
  readonly homeId: string
  readonly table: ProcessTable
  readonly clock: Clock
  /** Resolves when everything seen so far is on the disk. */
  durable(): Promise<void>
  /** This process may live in a cgroup of the home: only a program that runs one home and nothing else. */
  readonly cgroup?: CgroupPlace
  /** Told when a process floods one of its streams. */
  readonly report?: Report
  /** Of each output stream of each process. */
  readonly limits?: OutputLimits
}

/** Milliseconds between SIGTERM and SIGKILL for what a daemon left, and for what left the group of a process. */
const termMs = { reap: 1000, strays: 500 }

export function createSpawner(options: SpawnerOptions) {
  const { homeId, table, clock, durable, cgroup: place, report, limits = OUTPUT_LIMITS } = options
  const system = hostSystem()
  const reaper = new Reaper(system)
  const { platform } = process
  const cgroup = place && platform === 'linux' ? new Cgroup(homeId, system.self, place) : undefined
  const home = homeNumber(homeId)
  /** Of this process, which another one of this home may have started. */
  const ownNumber = numberIn(inspectProcess(system.self, platform)?.mark ?? 0, home)
  const running = new Map<number, ManagedProcess>()
  const requests = new WeakMap<ProcessHandle, OwnedRequest>()
  /** Descend from none of `running`, which cannot change: what starts later is new itself. */
  const strangers = new Identities()
  /** Those of them that no daemon of this home started. */
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
    // At once: Node cannot have waited for it yet, so this pid is this process.
    const startTime = inspectProcess(pid, platform)?.startTime
    const forget = async () => {
      running.delete(number)
      // A row that stays is found stale at the next boot.
      await recorded.then(() => table.remove(pid, handle.startTime)).catch(() => {})
    }
    const mark = markFor(home, number)
    const ownId = processId(number)
    const isMarked = (seen: ProcessSeen) => seen.mark === mark || seen.processId === ownId
    // Elsewhere nothing tells what left the group, and a look at all processes starts one.
    const look = platform === 'linux' ? system.look : async () => new Map()
    const endStrays = () =>
      reaper.endLeft({ rows: [], isMarked, ownChildren: () => false, look, termMs: termMs.strays })
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

  /** For which running process of this spawner this one was started, itself included; undefined when for none. */
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
    for (const seen of walked) strangers.add(seen)
    return undefined
  }

  /** Whether a process descends from one of this spawner, and whose that is. */
  const descentOf = (pid: number): Caller => {
    const seen = inspectProcess(pid, platform)
    if (pid === system.self) return { status: 'outside' }
    if (!seen || seen.ended) return { status: 'gone' }
    if (outside.has(seen)) return { status: 'outside' }
    const origin = originOf(pid)
    const request = origin && requests.get(origin)
    if (request) return { status: 'started', owner: request.owner, label: request.label }
    if (numberIn(seen.mark, home) > 0 || idsOf(pid, platform).homeId === homeId || cgroup?.has(pid) === true)
      return { status: 'left' }
    outside.add(seen)
    return { status: 'outside' }
  }

  return {
    /** Pid of this process. */
    self: system.self,
    /** It has started a process since it was made. */
    get hasStarted() {
      return last > 0
    },
    /**
     * Starts a process that leads a group of its own, when everything seen so far is on the disk; resolves when its row is
     * as well. Throws {@link SpawnError}.
     */
    async spawn(request: OwnedRequest): Promise<ProcessHandle> {
      await checkFolder(request.cwd)
      const [command] = request.argv
      marking ??= findMarking(platform)
      const mark = await marking
      if (mark && command) checkBefore(request, command)
      await enclosed
      await durable()
      // One start in each turn of the event loop, which it holds until the program has been loaded.
      const mine = starting
      starting = mine.then(turn)
      await mine
      refuseWhenClosed()
      const number = nextNumber()
      const env = { ...withoutWithheld(request.env), SVC_HOME_ID: homeId, SVC_PROCESS_ID: processId(number) }
      const child = start(request, command ? (mark?.(markFor(home, number)) ?? []) : [], env)
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
    /** Those whose group is not gone. */
    list: (): ProcessHandle[] => [...running.values()],
    /** Stops all, and refuses to start any from now on. Throws an AggregateError when some cannot be ended. */
    async stopAll(options?: StopOptions) {
      closed = true
      const ends = await Promise.allSettled([...running.values()].map(handle => handle.stop(options)))
      const errors = ends.flatMap(end => (end.status === 'rejected' ? [end.reason] : []))
      if (errors.length > 0) throw new AggregateError(errors, `${errors.length} process groups could not be ended`)
    },
    /**
     * Ends what a daemon of this home started and left behind: at boot an earlier one, at the end this one. Known are they
     * by their rows, by the mark that the spawner gave them, by `SVC_HOME_ID` in their environment, by the home's cgroup and
     * by their parents; never by a pid alone. Rows of processes that are gone are removed.
     */
    async reap() {
      await enclosed
      await cgroup?.leave()
      const rows = await ownRows(table, homeId)
      let members = new Set<number>()
      const result = await reaper.endLeft({
        rows,
        isMarked: seen => numberIn(seen.mark, home) > 0 || seen.homeId === homeId || members.has(seen.pid),
        ownChildren: () => running.size > 0,
        async look() {
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
    /** Moves this process into a cgroup of the home, where one is wanted and can be made; whatever starts then is in it. */
    async enclose() {
      enclosed = cgroup?.enter()
      await enclosed
    },
    originOf,
    descentOf,
    /** Every process that descends from one of this spawner. */
    async descendants() {
      const all = [...(await system.look()).keys()].map(pid => ({ pid, caller: descentOf(pid) }))
      return all.filter(({ caller: { status } }) => status === 'started' || status === 'left')
    },
  }
}

/** Without a command Node itself refuses. */
function checkBefore(request: SpawnRequest, command: string): void {
  try {
    checkCommand(command, request.cwd, request.env.PATH)
  } catch (error) {
    throw failure(request, error)
  }
}

async function checkFolder(cwd: string): Promise<void> {
  const found = await stat(cwd).catch(() => undefined)
  if (!found?.isDirectory())
    throw new SpawnError('spawn_failed', `the working folder ${cwd} does not exist`, 'create it or choose another')
}

function start(
  request: SpawnRequest,
  marking: readonly string[],
  env: Record<string, string>,
): ChildProcessWithoutNullStreams {
  const [command = '', ...args] = [...marking, ...request.argv]
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
