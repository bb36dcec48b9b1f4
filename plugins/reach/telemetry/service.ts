import type { Exchange, Tx } from '../../../kernel/plugin.js'
import type { StoredEvent } from '../../platform/events/api.js'
import { builtIn } from './metrics/built-in.js'
import { Collecting } from './metrics/collect.js'
import { Counts } from './metrics/counts.js'
import { CONTENT_TYPES, exposed, expositionFor } from './metrics/exposition.js'
import { LoopDelay } from './metrics/process.js'
import type { K } from './needs.js'

/** Figures that a monitoring system reads. */
export class TelemetryService {
  readonly counts: Counts
  readonly metrics
  readonly #collecting: Collecting

  constructor(private readonly kernel: K) {
    this.counts = new Counts(kernel)
    const loopDelay = new LoopDelay(kernel.clock)
    kernel.scope.defer('loop delay', () => loopDelay.end())
    this.metrics = builtIn(kernel, this.counts, { loopDelay, spans: () => ({}) })
    this.#collecting = new Collecting(kernel, (owner, where, error) => {
      this.counts.collectFailures.add([owner])
      kernel.needs.faults(owner, `metric ${where}`, error)
    })
  }

  /** All metrics as the text that a header `Accept` asks for. */
  async exposition(accept: string | undefined): Promise<{ readonly text: string; readonly type: string }> {
    const as = expositionFor(accept)
    return { text: exposed(await this.#collecting.families(), as), type: CONTENT_TYPES[as] }
  }

  replied(exchange: Exchange): void {
    this.counts.request(exchange)
  }

  /** An event was appended; it counts when it is on the disk. */
  written(t: Tx, event: StoredEvent): undefined {
    this.kernel.db.onDurable(t, () => this.counts.event(event))
  }
}
