import type { Consumer, Faults, PluginKernel } from '../../../kernel/plugin.js'
import type { ProcessesApi } from './api.js'
import { Callers } from './callers.js'
import { createSpawner, type Spawner } from './spawner.js'
import { homeIdentity, processTable } from './tables.js'

export interface ProcessesOptions {
  /**
   * Allows to move this process into a cgroup of the home (Linux, where the system permits it), so that even processes which fork
   * faster than they can be found end with the daemon. Only for a program that runs nothing but this home.
   */
  readonly cgroup?: boolean
}

/**
 * Milliseconds for the end of all processes: 10 s for a group, half a second for processes that left it, and another snapshot.
 */
const END_MS = 20_000

/** Starts and ends processes for plugins. Processes of an earlier daemon are ended before the first can be started. */
export class ProcessesService {
  #spawner: Spawner | undefined
  #callers: Callers | undefined

  constructor(
    private readonly options: ProcessesOptions,
    private readonly kernel: PluginKernel<{ report: typeof Faults }>,
  ) {}

  async start(): Promise<void> {
    const { db, home, ids, clock, scope } = this.kernel
    const { cgroup } = this.options
    const { homeId, isNew } = await homeIdentity(db, home.root, ids)
    const spawner = createSpawner({
      homeId,
      table: processTable(db),
      clock,
      durable: () => db.durable(),
      ...(cgroup ? { cgroup: db } : {}),
      report: ({ owner, hook, error }) => this.kernel.needs.report(owner, hook, error),
    })
    this.#spawner = spawner
    this.#callers = new Callers(spawner)
    // A new home has no earlier processes.
    const isClean = (isNew && !cgroup) || (await this.#reap(spawner, 'an earlier daemon'))
    const end = async () => {
      await spawner.stopAll().finally(async () => {
        if (!isClean || spawner.hasStarted || cgroup) await this.#reap(spawner, 'this daemon')
      })
    }
    scope.defer('processes', end, END_MS)
    // Not awaited, as it takes 20 ms; starts of processes wait for it.
    void spawner.enclose()
  }

  /** The API for one plugin: its processes have its name and end with its scope. */
  for({ name, scope }: Consumer): ProcessesApi {
    const spawner = this.#spawner as Spawner
    const callers = this.#callers as Callers
    return {
      callerOf: connection => callers.of(connection),
      async spawn(request) {
        const handle = await spawner.spawn({ ...request, owner: name })
        try {
          const release = scope.defer(`process ${handle.pid}`, () => handle.stop())
          void handle.exited.then(release, () => {})
          return handle
        } catch (error) {
          // The plugin was released while its process started.
          handle.kill()
          await handle.stop()
          throw error
        }
      },
    }
  }

  /** Ends leftover processes; resolves to whether none is left. */
  async #reap(spawner: Spawner, whose: string): Promise<boolean> {
    const { ended, resisting } = await spawner.reap()
    if (ended.length > 0) this.kernel.log.warn(`ended ${ended.length} processes that ${whose} left`)
    const which = resisting.map(({ pid, label }) => `${pid} (${label})`).join(', ')
    if (which) this.kernel.log.error(`processes that ${whose} left did not end: ${which}. Inspect them: ps -fp <pid>`)
    return resisting.length === 0
  }
}
