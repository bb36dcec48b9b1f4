import type { Plugin } from '../contract/plugin.js'
import type { Tap } from '../contract/surface.js'
import type { OwnedTapper } from './options.js'
import { tapService } from './register.js'
import type { Services } from './services.js'

/** A running plugin with taps on optional services. */
interface Holder {
  readonly tapper: OwnedTapper
  readonly taps: readonly Tap<unknown>[]
  readonly ownService: unknown
  /** The service from the holder's point of view, looked up on every read since providers change. */
  readonly view: { readonly current?: unknown }
}

/** A tap that could not be made, and its plugin. */
export interface FailedTap {
  readonly holder: string
  readonly error: unknown
}

/**
 * Taps on `maybe(Token)`. They are made in the turn in which the second of the two plugins starts, so that no hook call misses
 * them, and end with the first that is released. Their order among other taps follows the holder's depth, whichever plugin started
 * first.
 */
export class OptionalTaps {
  /** The holders by token id. */
  readonly #holders = new Map<string, Set<Holder>>()

  constructor(private readonly services: Services) {}

  /**
   * Registers the taps of a starting plugin, for running providers and for those that start later.
   * @param needs the services that it received, by token id
   * @throws MissingHook
   */
  hold({ surface }: Plugin, tapper: OwnedTapper, ownService: unknown, needs: ReadonlyMap<string, unknown>): void {
    const byToken = new Map<string, Tap<unknown>[]>()
    for (const tap of surface.taps ?? []) {
      if ('maybe' in tap.on) byToken.set(tap.on.maybe.id, [...(byToken.get(tap.on.maybe.id) ?? []), tap])
    }
    for (const [id, taps] of byToken) {
      const view = (needs.get(id) ?? this.services.whenThere(id, tapper.owner, tapper.scope)) as Holder['view']
      const holder = { tapper, taps, ownService, view }
      const holders = this.#holders.get(id) ?? new Set()
      this.#holders.set(id, holders.add(holder))
      tapper.scope.defer(`taps on ${id}`, () => holders.delete(holder))
      if (this.services.has(id)) this.#tap(id, holder)
    }
  }

  /** Makes the taps on a provider that has just started. */
  provided(id: string): FailedTap[] {
    return [...(this.#holders.get(id) ?? [])].flatMap(holder => {
      try {
        this.#tap(id, holder)
        return []
      } catch (error) {
        return [{ holder: holder.tapper.owner, error }]
      }
    })
  }

  #tap(id: string, { tapper, taps, ownService, view }: Holder): void {
    // The view is made first, so that its scope ends after that of the taps.
    const service = view.current
    const scope = this.services.scopeOfBoth(`taps of ${tapper.owner} on ${id}`, tapper, id)
    for (const tap of taps) tapService({ ...tapper, scope }, tap, id, service, ownService)
  }
}
