import type { Clock, Scope } from '../contract/basics.js'
import type { Consumer, Plugin } from '../contract/plugin.js'
import { OwnedScope } from '../scope.js'
import { needsOf } from './plan.js'

/** Milliseconds for each step of releasing the resources that a service holds for a consumer. */
const RELEASE_MS = 4000

/** The part of a plugin that provides a service; the kernel provides its own services the same way. */
export type Providing = Pick<Plugin, 'provides' | 'view'>

interface Provided {
  readonly plugin: Providing
  readonly service: unknown
  readonly scope: Scope
}

/** The provided services, by token id, and their views for the plugins that require them. */
export class Services {
  readonly #provided = new Map<string, Provided>()

  constructor(
    private readonly clock: Clock,
    private readonly consumer: (name: string, scope: Scope) => Consumer,
  ) {}

  has(id: string): boolean {
    return this.#provided.has(id)
  }

  provide(plugin: Providing, service: unknown, scope: Scope): void {
    if (plugin.provides) this.#provided.set(plugin.provides.id, { plugin, service, scope })
  }

  withdraw({ provides }: Plugin): void {
    if (provides) this.#provided.delete(provides.id)
  }

  /** The services that a plugin requires, by the name of the need; an optional one is looked up on every read. */
  for(plugin: Plugin, scope: Scope): Record<string, unknown> {
    const { name } = plugin
    return Object.fromEntries(
      needsOf(plugin).map(need => [
        need.name,
        need.hard ? this.#view(need.id, this.consumer(name, scope)) : this.whenThere(need.id, name, scope),
      ]),
    )
  }

  #view(id: string, consumer: Consumer): unknown {
    const found = this.#provided.get(id)
    return found?.plugin.view ? found.plugin.view(found.service, consumer) : found?.service
  }

  /** An optional service. Its view ends with its provider; the next provider gets another view. */
  whenThere(id: string, name: string, scope: Scope): { readonly current?: unknown } {
    let cached: { provided: Provided; view: unknown } | undefined
    const make = (provided: Provided) => {
      if (!provided.plugin.view) return provided.service
      return this.#view(
        id,
        this.consumer(name, this.scopeOfBoth(`view of ${id} for ${name}`, { owner: name, scope }, id)),
      )
    }
    const resolve = () => {
      const provided = this.#provided.get(id)
      if (!provided) return undefined
      if (cached?.provided !== provided) cached = { provided, view: make(provided) }
      return cached.view
    }
    return {
      get current() {
        return resolve()
      },
    }
  }

  /** A scope that ends with the consumer or with the provider of a token, whichever ends first; the other one then drops it. */
  scopeOfBoth(label: string, consumer: { readonly owner: string; readonly scope: Scope }, id: string): Scope {
    const provided = this.#provided.get(id)
    if (!provided) throw new Error(`no plugin provides ${id}`)
    const scope = new OwnedScope(consumer.owner, this.clock)
    const ends: (() => Promise<void>)[] = []
    const release = async () => {
      if (scope.signal.aborted) return
      const errors = await scope.release(RELEASE_MS)
      for (const end of ends) await end()
      if (errors.length > 0) throw new AggregateError(errors, errors.map(({ message }) => message).join('; '))
    }
    ends.push(consumer.scope.defer(label, release), provided.scope.defer(label, release))
    return scope
  }
}
