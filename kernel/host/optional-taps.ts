import type { Plugin } from '../contract/plugin.js'
import type { Tap } from '../contract/surface.js'
import type { OwnedTapper } from './options.js'
import { tapService } from './register.js'
import type { Services } from './services.js'

/** A plugin that runs and taps services which need not be there. */
interface Holder {
  readonly tapper: OwnedTapper
  readonly taps: readonly Tap<unknown>[]
  readonly self: unknown
  /** The service as the holder sees it, read at each provider anew. */
  readonly view: { readonly current?: unknown }
}

/** A tap that could not be made, and the plugin that has it. */
export interface FailedTap {
  readonly holder: string
  readonly error: unknown
}

/**
 * Taps on `maybe(Token)`. They are made in one turn with the start of the second of the two plugins, so that no hook is called
 * in between, and go with the first of them that goes. Their place among other taps is that of the holder's depth, whichever
 * plugin started first.
 */
export class OptionalTaps {
  /** By the id of the token. */
  readonly #holders = new Map<string, Set<Holder>>()

  constructor(private readonly services: Services) {}

  /**
   * A plugin starts: taps the providers that run, and those that start later.
   * @param needs what it was handed, by the ids of tokens
   * @throws MissingHook
   */
  hold({ surface }: Plugin, tapper: OwnedTapper, self: unknown, needs: ReadonlyMap<string, unknown>): void {
    const byToken = new Map<string, Tap<unknown>[]>()
    for (const tap of surface.taps ?? []) {
      if ('maybe' in tap.on) byToken.set(tap.on.maybe.id, [...(byToken.get(tap.on.maybe.id) ?? []), tap])
    }
    for (const [id, taps] of byToken) {
      const view = (needs.get(id) ?? this.services.whenThere(id, tapper.owner, tapper.scope)) as Holder['view']
      const holder = { tapper, taps, self, view }
      const holders = this.#holders.get(id) ?? new Set()
      this.#holders.set(id, holders.add(holder))
      tapper.scope.defer(`taps on ${id}`, () => holders.delete(holder))
      if (this.services.has(id)) this.#tap(id, holder)
    }
  }

  /** The plugin that provides this token has started. */
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

  #tap(id: string, { tapper, taps, self, view }: Holder): void {
    // The view first: its scope then ends after that of the taps.
    const service = view.current
    const scope = this.services.scopeOfBoth(`taps of ${tapper.owner} on ${id}`, tapper, id)
    for (const tap of taps) tapService({ ...tapper, scope }, tap, id, service, self)
  }
}
