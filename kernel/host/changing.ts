import type { Change } from '../contract/kernel-hooks.js'

/** A change under way: who started in it, and whom the taps of its stages refused. */
export class Changing implements Change {
  readonly started = new Set<string>()
  readonly refused = new Map<string, string>()

  constructor(readonly boot: boolean) {}

  fail(owner: string, error: string): void {
    this.refused.set(owner, error)
  }
}
