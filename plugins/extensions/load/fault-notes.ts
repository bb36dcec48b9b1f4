import type { AttributedFault } from '../../../kernel/plugin.js'
import type { LogRing } from './log-ring.js'

/** Faults that the daemon attributes to the code of an extension, as lines of its log. */
export class FaultNotes {
  constructor(
    private readonly log: LogRing,
    /** Epoch milliseconds of the last fault that is in the log. */
    private until: number,
  ) {}

  /** Notes each fault of plugins of these names once. */
  note(faults: readonly AttributedFault[], owners: readonly (string | undefined)[]): void {
    const since = this.until
    for (const { owner, at, count, where, error } of faults) {
      if (!owners.includes(owner) || at <= since) continue
      this.until = Math.max(this.until, at)
      this.log.note(`failed in ${where}${count > 1 ? `, ${count} times` : ''}: ${error}`)
    }
  }
}
