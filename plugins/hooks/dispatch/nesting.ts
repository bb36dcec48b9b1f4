import type { Awaitable, Identified, PluginKernel } from '../../../kernel/plugin.js'
import type { Processes } from '../../processes/api.js'
import type { DeclaredHook } from '../declared.js'
import { hookLabel } from '../executors/launch.js'
import { type Dispatcher, MAX_DEPTH } from './dispatcher.js'

/** How deep in hooks the program is that makes a request, as it says itself. */
const DEPTH_HEADER = 'x-svc-hook-depth'

/** Finds out how deep in hooks whoever makes a request is, so that hooks which run for it are one deeper. */
export class Nesting {
  constructor(
    private readonly kernel: PluginKernel<{ processes: typeof Processes }>,
    private readonly dispatcher: Pick<Dispatcher, 'within' | 'depthOf' | 'hasLeft'>,
  ) {}

  /** What its header says counts, for nobody gains by that; what is known of its process counts where that is deeper. */
  nest(incoming: Identified): Awaitable<undefined> {
    const said = incoming.headers[DEPTH_HEADER]
    const claimed = said === undefined ? 0 : /^[1-9]$/.test(String(said)) ? Number(said) : MAX_DEPTH
    // Reading makes nothing happen, and until a program of a hook has run nobody can be one.
    if (incoming.method === 'GET' || !this.dispatcher.hasLeft) return this.#take(incoming, claimed)
    return this.#known(incoming).then(depth => this.#take(incoming, Math.max(claimed, depth)))
  }

  #take(incoming: Identified, depth: number): undefined {
    if (depth > 0) incoming.callBy(handle => this.dispatcher.within(depth, handle))
  }

  /** The deepest run that the caller may belong to: one that stays answers several at once. */
  async #known({ actor, connection }: Identified): Promise<number> {
    if (actor.owner?.kind === 'extension') return this.dispatcher.depthOf(ofExtension(actor.owner.id))
    if (!connection) return 0
    const caller = await this.kernel.needs.processes.callerOf(connection)
    if (caller.status !== 'started') return 0
    const { owner, label } = caller
    if (owner === this.kernel.name)
      return Math.max(
        1,
        this.dispatcher.depthOf(hook => hook.executor.kind === 'subprocess' && hookLabel(hook) === label),
      )
    return owner === 'extensions'
      ? this.dispatcher.depthOf(hook => ofExtension(label.replace(/^extension /, ''))(hook))
      : 0
  }
}

const ofExtension =
  (key: string) =>
  ({ executor }: DeclaredHook) =>
    executor.kind === 'extension' && executor.key === key
