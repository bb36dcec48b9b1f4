import { type Change, Collected, type Faults, type PluginKernel } from '../../kernel/plugin.js'
import { keepRunning } from './keep-running.js'

/** Starts the background loops that stand on surfaces. */
export class ServicesService {
  constructor(private readonly kernel: PluginKernel<{ report: typeof Faults }>) {}

  /** A loop hangs on the scope of its plugin, and goes with that. */
  running({ started }: Change): void {
    const { clock, ids, needs, collect } = this.kernel
    for (const { owner, entry: bound } of collect(Collected.services)) {
      if (!started.has(owner)) continue
      const { scope, self, entry } = bound
      const run = entry.run.bind(undefined, self)
      keepRunning(owner, { scope, name: entry.name, run }, clock, ids, fault =>
        needs.report(fault.owner, fault.hook, fault.error),
      )
    }
  }
}
