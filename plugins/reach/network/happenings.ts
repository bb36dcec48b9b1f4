import type { HooksOf, Tx } from '../../../kernel/plugin.js'
import type { Happening, HappeningName, points } from './api.js'
import type { K } from './needs.js'

/** Announces events in channels once they are durable. */
export class Happenings {
  constructor(
    private readonly kernel: K,
    private readonly hooks: Pick<HooksOf<typeof points>, HappeningName>,
  ) {}

  tell(t: Tx, name: HappeningName, about: () => Happening): void {
    const hook = this.hooks[name]
    if (!hook.isUsed()) return
    const happening = about()
    this.kernel.db.onDurable(t, () => void hook.call(happening))
  }
}
