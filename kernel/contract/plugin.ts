import type { Awaitable, Scope } from './basics.js'
import type { Log, PluginKernel } from './plugin-kernel.js'
import type { Actor } from './record.js'
import type { Surface } from './surface.js'
import type { Needs, Token } from './token.js'

/** A named unit that registers entries and may provide one service. Hand-written objects are as good as defined ones. */
export interface Plugin {
  /** In-tree `things`; drop-in `vendor.things`. */
  readonly name: string
  readonly version: string
  readonly requires: Needs
  readonly provides?: Token<unknown>
  /** Makes the view of the service for one plugin that requires the token; without it all of them share the service. */
  // biome-ignore lint/suspicious/noExplicitAny: the erasing line of plugins
  view?(service: any, consumer: Consumer): unknown
  /**
   * Name of the plugin that this one replaces once the operator lists it in `plugins.replace`; it then gets that plugin's tables.
   */
  readonly replaces?: string
  /** Plain data, readable without running anything. */
  // biome-ignore lint/suspicious/noExplicitAny: the erasing line of plugins
  readonly surface: Surface<any>
  /** Begins to load the code of `apply`; a boot calls it for all plugins before it applies the first. */
  load?(): Promise<unknown>
  /**
   * Acquires the plugin's resources, releasing them by `kernel.scope`, and returns its service, which is passed to the functions of
   * its surface (without a service: `kernel`). The surface is registered when this has resolved.
   */
  // biome-ignore lint/suspicious/noExplicitAny: the erasing line of plugins
  apply(kernel: PluginKernel<any>): Awaitable<unknown>
}

/** State of a plugin. A plugin that the host does not know has none. */
export type PluginState =
  /** `missing` is the path from the plugin through its requirements to the unavailable token, with the reason. */
  | { readonly status: 'waiting'; readonly missing: readonly string[] }
  | { readonly status: 'active' }
  | { readonly status: 'failed'; readonly error: string; readonly next?: string }
  | { readonly status: 'disabled'; readonly why: string }

/** Why a plugin does not run, for people; empty when it does. */
export function reasonOf(state: PluginState): string {
  if (state.status === 'failed') return state.error
  if (state.status === 'waiting') return `it waits for ${state.missing.join(' → ')}`
  return state.status === 'disabled' ? state.why : ''
}

/** A plugin that requires a service. */
export interface Consumer {
  readonly name: string
  /** The scope of the resources that the service holds for the consumer; released with the first of the two plugins. */
  readonly scope: Scope
  /** The consumer acting on its own; the actor of a request is an argument. */
  readonly actor: Actor
  readonly log: Log
}

/** A token whose service, of type `S`, makes a view for each plugin that requires it. */
export interface Provider<S> extends Token<S> {
  readonly for: (service: S, consumer: Consumer) => unknown
}

/** Provides a service that distinguishes its consumers: each gets its own result of `make`. */
export function perConsumer<S, T>({ id }: Token<T>, make: (service: S, consumer: Consumer) => NoInfer<T>): Provider<S> {
  return { id, for: make }
}

/** Whether a plugin is a drop-in, which comes and goes at runtime; its name begins with a vendor, `acme.things`. */
export const isDropIn = (name: string): boolean => name.includes('.')

/** The head of a plugin: everything but its surface. */
export interface PluginHead<N extends Needs, S extends T, T> {
  readonly name: string
  readonly version: string
  readonly requires?: N
  /** The token of the service, or one with a view for each consumer ({@link perConsumer}). */
  readonly provides?: Token<T> | Provider<T>
  readonly replaces?: string
  /**
   * Loads the service's class; the only part of a plugin that is not loaded with its surface. Without it the functions of the
   * surface are called with the `PluginKernel`.
   */
  readonly service?: () => Promise<ServiceClass<N, S>>
}

export type ServiceClass<N extends Needs, S> = new (kernel: PluginKernel<N>) => S

/** Defines a plugin; it has no power that a hand-written object lacks. The `start()` of a service is awaited, if it has one. */
export function definePlugin<const N extends Needs, T = unknown, S extends T = T & PluginKernel<N>>(
  head: PluginHead<N, S, T>,
): { surface(surface: Surface<S>): Plugin } {
  return {
    surface: surface => ({
      name: head.name,
      version: head.version,
      requires: head.requires ?? {},
      ...(head.provides ? { provides: head.provides as Token<unknown> } : {}),
      ...(head.provides && 'for' in head.provides ? { view: head.provides.for } : {}),
      ...(head.replaces === undefined ? {} : { replaces: head.replaces }),
      surface,
      ...(head.service ? { load: head.service } : {}),
      async apply(kernel: PluginKernel<N>) {
        const Service = await head.service?.()
        if (!Service) return undefined
        const service = new Service(kernel)
        await (service as { start?: () => Awaitable<void> }).start?.()
        return service
      },
    }),
  }
}
