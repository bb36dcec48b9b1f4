import type { Change } from '../contract/kernel-hooks.js'

/** A change under way: the plugins that it started, and those that taps of its stages refused, with the reason. */
export class Changing implements Change {
  readonly started = new Set<string>()
  readonly refused = new Map<string, string>()

  constructor(readonly boot: boolean) {}

  fail(owner: string, error: string): void {
    this.refused.set(owner, error)
  }
}
