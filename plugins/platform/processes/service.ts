import type { Consumer, Faults, PluginKernel, ServiceClass } from '../../../kernel/plugin.js'
import type { ProcessesApi } from './api.js'
import { Callers } from './callers.js'
import { createSpawner, type Spawner } from './spawner.js'
import { cgroupPlace, homeIdentity, processTable } from './tables.js'

export interface ProcessesOptions {
  /**
   * The program runs this home and nothing else, and may be moved into a cgroup of the home (Linux, where the system lets
   * it make one): then even what forks faster than it can be found ends with the daemon.
   */
  readonly cgroup?: boolean
}

/**
 * Milliseconds in which all processes end. A group is given 10 s, what left it half a second more, and what is then still
 * found another look.
 */
const END_MS = 20_000

type ProcessesNeeds = { readonly report: typeof Faults }

/** Starts processes for plugins and ends them, those of an earlier daemon before anybody can ask for one. */
export class ProcessesService {
  #spawner: Spawner | undefined
  #callers: Callers | undefined

  constructor(
    private readonly kernel: PluginKernel<ProcessesNeeds>,
    private readonly options: ProcessesOptions,
  ) {}

  async start(): Promise<void> {
    const { db, home, ids, clock, scope } = this.kernel
    const { cgroup } = this.options
    let isNew = false
    const homeId = await homeIdentity(db, home.root, () => {
      isNew = true
      return ids.hex(16)
    })
    const spawner = createSpawner({
      homeId,
      table: processTable(db),
      clock,
      durable: () => db.durable(),
      ...(cgroup ? { cgroup: cgroupPlace(db) } : {}),
      report: ({ owner, hook, error }) => this.kernel.needs.report(owner, hook, error),
    })
    this.#spawner = spawner
    this.#callers = new Callers(spawner)
    // Nothing can have the name of a home that had none until now.
    const isClean = (isNew && !cgroup) || (await this.#reap(spawner, 'an earlier daemon'))
    const end = async () => {
      await spawner.stopAll().finally(async () => {
        if (!isClean || spawner.hasStarted || cgroup) await this.#reap(spawner, 'this daemon')
      })
    }
    scope.defer('processes', end, END_MS)
    // It takes 20 ms, and what is started waits for it.
    void spawner.enclose()
  }

  /** What one plugin is handed: its processes have its name and end with its scope. */
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
          // The plugin went while its process was started.
          handle.kill()
          await handle.stop()
          throw error
        }
      },
    }
  }

  /** Ends what somebody left; resolves to whether nothing of it is left now. */
  async #reap(spawner: Spawner, whose: string): Promise<boolean> {
    const { ended, resisting } = await spawner.reap()
    if (ended.length > 0) this.kernel.log.warn(`ended ${ended.length} processes that ${whose} left`)
    const which = resisting.map(({ pid, label }) => `${pid} (${label})`).join(', ')
    if (which) this.kernel.log.error(`processes that ${whose} left did not end: ${which}. Look at them: ps -fp <pid>`)
    return resisting.length === 0
  }
}

/** The service's class with its options, as `definePlugin` wants it. */
export function serviceWith(options: ProcessesOptions): ServiceClass<ProcessesNeeds, ProcessesService> {
  return class extends ProcessesService {
    constructor(kernel: PluginKernel<ProcessesNeeds>) {
      super(kernel, options)
    }
  }
}
