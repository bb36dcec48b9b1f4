import type { Plugin } from '../contract/plugin.js'
import { dependentsOf } from './plan.js'

const tapsWrites = ({ surface: { hooks } }: Plugin): boolean =>
  hooks?.write !== undefined || hooks?.written !== undefined

/** Has the transactions of these plugins begin when `over` has resolved. */
export type Hold = (owners: ReadonlySet<string>, over: Promise<void>) => void

/**
 * While a plugin is exchanged that taps the writes of records, transactions of those that run on wait: it would neither judge
 * them nor tell of them. Those that it requires do not wait: the exchange itself may wait for them.
 */
export class HeldWrites {
  /** Whose going holds the others. */
  readonly #tapping = new Set<string>()
  #holds: ReadonlySet<string> = new Set()
  #open: (() => void) | undefined

  constructor(private readonly hold: Hold) {}

  /** @param leaving who will go and come back @param loaded who runs, with those */
  expect(leaving: readonly Plugin[], loaded: readonly Plugin[]): void {
    const tapping = leaving.filter(tapsWrites)
    const isRequired = (plugin: Plugin) => dependentsOf(plugin, loaded).some(other => tapping.includes(other))
    for (const { name } of tapping) this.#tapping.add(name)
    const others = loaded.filter(plugin => !leaving.includes(plugin) && !isRequired(plugin))
    this.#holds = new Set(others.map(({ name }) => name))
  }

  /** That plugin goes now. */
  begin(name: string): void {
    if (!this.#tapping.has(name) || this.#open) return
    const over = new Promise<void>(resolve => {
      this.#open = resolve
    })
    this.hold(this.#holds, over)
  }

  /** That plugin taps again, or, without a name, nobody comes back any more. */
  end(name?: string): void {
    if (name === undefined) this.#tapping.clear()
    else this.#tapping.delete(name)
    if (this.#tapping.size > 0) return
    this.#open?.()
    this.#open = undefined
  }
}
