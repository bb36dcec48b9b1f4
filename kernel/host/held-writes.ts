import type { Plugin } from '../contract/plugin.js'
import { dependentsOf } from './plan.js'

const tapsWrites = ({ surface: { hooks } }: Plugin): boolean =>
  hooks?.write !== undefined || hooks?.written !== undefined

/** Delays the transactions of these plugins until `over` resolves. */
export type Hold = (owners: ReadonlySet<string>, over: Promise<void>) => void

/**
 * Transactions wait while a plugin with taps on record writes is exchanged: such a write would be neither checked by it nor
 * reported to it. Transactions of plugins that it requires go on, because the exchange may wait for them.
 */
export class HeldWrites {
  /** Leaving plugins that tap writes; the hold ends when each runs again. */
  readonly #tapping = new Set<string>()
  #holds: ReadonlySet<string> = new Set()
  #open: (() => void) | undefined

  constructor(private readonly hold: Hold) {}

  /**
   * Prepares the hold, which starts with {@link begin}.
   * @param leaving plugins that are released and start again
   * @param loaded all running plugins, those included
   */
  expect(leaving: readonly Plugin[], loaded: readonly Plugin[]): void {
    const tapping = leaving.filter(tapsWrites)
    const isRequired = (plugin: Plugin) => dependentsOf(plugin, loaded).some(other => tapping.includes(other))
    for (const { name } of tapping) this.#tapping.add(name)
    const others = loaded.filter(plugin => !leaving.includes(plugin) && !isRequired(plugin))
    this.#holds = new Set(others.map(({ name }) => name))
  }

  /** A leaving plugin is released; the first that taps writes starts the hold. */
  begin(name: string): void {
    if (!this.#tapping.has(name) || this.#open) return
    const over = new Promise<void>(resolve => {
      this.#open = resolve
    })
    this.hold(this.#holds, over)
  }

  /** A plugin runs again. Without a name the exchange is over, and the hold ends in any case. */
  end(name?: string): void {
    if (name === undefined) this.#tapping.clear()
    else this.#tapping.delete(name)
    if (this.#tapping.size > 0) return
    this.#open?.()
    this.#open = undefined
  }
}
