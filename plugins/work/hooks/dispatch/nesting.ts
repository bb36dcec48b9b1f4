import type { Awaitable, Fault, Gate, Identified } from '../../../../kernel/plugin.js'
import type { HookRequest, Whom } from '../api.js'
import type { DeclaredHook } from '../declared.js'
import { hookLabel } from '../executors/launch.js'
import type { K } from '../needs.js'
import { type Dispatcher, MAX_DEPTH } from './dispatcher.js'

/** Nesting depth claimed by the hook program that makes a request. */
const DEPTH_HEADER = 'x-svc-hook-depth'

/** Depth and subjects of the hook runs that a request may belong to. */
interface Part {
  readonly depth: number
  readonly whoms: readonly Whom[]
}

/** Determines the nesting depth of a request, so that hooks triggered by it are one level deeper. */
export class Nesting {
  constructor(
    private readonly kernel: K,
    private readonly dispatcher: Pick<Dispatcher, 'within' | 'depthOf' | 'whomsOf' | 'hasLeft'>,
    private readonly asking: Pick<Gate<[HookRequest]>, 'ask'>,
  ) {}

  /** The claimed depth is trusted, because claiming more gains nothing. The depth known from the process wins if it is deeper. */
  nest(incoming: Identified): Awaitable<Fault | undefined> {
    const said = incoming.headers[DEPTH_HEADER]
    const claimed = said === undefined ? 0 : /^[1-9]$/.test(String(said)) ? Number(said) : MAX_DEPTH
    // GET requests trigger no hooks, and before any hook program has run no caller can be one.
    if (incoming.method === 'GET' || !this.dispatcher.hasLeft) return this.#take(incoming, claimed)
    return this.#asks(incoming, claimed)
  }

  async #asks(incoming: Identified, claimed: number): Promise<Fault | undefined> {
    const { depth, whoms } = await this.#partOf(incoming)
    const refused = whoms.length > 0 ? await this.asking.ask({ id: incoming.id, whoms }) : undefined
    return refused ?? this.#take(incoming, Math.max(claimed, depth))
  }

  #take(incoming: Identified, depth: number): undefined {
    if (depth > 0) incoming.callBy(handle => this.dispatcher.within(depth, handle))
  }

  async #partOf({ actor, connection }: Identified): Promise<Part> {
    if (actor.owner?.kind === 'extension') return this.#part(ofExtension(actor.owner.id))
    const caller = connection ? await this.kernel.needs.processes.callerOf(connection) : undefined
    if (caller?.status !== 'started') return NO_PART
    const { owner, label } = caller
    if (owner === this.kernel.name) {
      const part = this.#part(hook => hook.executor.kind === 'subprocess' && hookLabel(hook) === label)
      return { ...part, depth: Math.max(1, part.depth) }
    }
    return owner === 'subprocess-host' ? this.#part(ofExtension(label.replace(/^extension /, ''))) : NO_PART
  }

  /** The deepest run that the caller may belong to: a warm program handles several at once. */
  #part(wanted: (hook: DeclaredHook) => boolean): Part {
    return { depth: this.dispatcher.depthOf(wanted), whoms: this.dispatcher.whomsOf(wanted) }
  }
}

const NO_PART: Part = { depth: 0, whoms: [] }

const ofExtension =
  (key: string) =>
  ({ executor }: DeclaredHook) =>
    executor.kind === 'extension' && executor.key === key
