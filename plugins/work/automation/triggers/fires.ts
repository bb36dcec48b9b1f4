import { hash } from 'node:crypto'
import { type GapEvent, isGap, type StoredEvent } from '../../../platform/events/api.js'
import type { Claims } from '../claim.js'
import type { K } from '../needs.js'
import type { Skip } from '../runs/room.js'
import type { RunRow } from '../runs/run-row.js'
import type { Envelope } from './envelope.js'
import type { Observed } from './observed.js'
import { renderTemplate } from './prompt-template.js'
import type { TriggerRecord } from './trigger-kind.js'
import type { Triggers } from './triggers.js'

/** Maximum number of trigger runs in one chain of causes. */
const MAX_DEPTH = 3

/** The plugin as the firing of triggers sees it. */
export interface FireWork {
  readonly observed: Observed
  readonly triggers: Triggers
  readonly claims: Claims
  /** False when automation is disabled: events are ignored. */
  readonly enabled: boolean
  /** Dispatches a durably claimed run. */
  dispatch(run: RunRow, trigger: TriggerRecord): void
}

/** Claims a run for each trigger that matches a logged event. */
export class TriggerFires {
  constructor(
    private readonly kernel: K,
    private readonly work: FireWork,
  ) {}

  /**
   * Fires the matching triggers. Run ids are derived from trigger and event, so an event redelivered after a crash fires
   * nothing twice. Throws when the runs cannot be written now; the event is then redelivered.
   */
  async observe(event: StoredEvent | GapEvent): Promise<void> {
    // Until a restored home is confirmed, the original home handles the events.
    if (!this.work.enabled || this.kernel.needs.daemon.held) return
    if (isGap(event)) {
      this.kernel.log.warn(`${event.payload.missed} events are older than 7 days and fire no triggers`)
      return
    }
    const envelope = this.work.observed.envelopeOf(event)
    const triggers = envelope ? this.work.observed.matching(envelope) : []
    if (!envelope || triggers.length === 0) return
    const refusal = await this.kernel.needs.disk.refusal()
    if (refusal) throw refusal
    await this.kernel.needs.daemon.admit('automation run')
    const depth = this.work.observed.depthOf(event) + 1
    const claimed = await this.kernel.db.tx(t =>
      triggers.map(trigger => {
        const { prompt, skip } = promptOf(trigger, envelope, depth)
        const id = runId(trigger.id, `event|${event.id}`)
        const metadata = { activation: envelope.source, event: event.name, event_seq: event.seq }
        return this.work.claims.fired(t, trigger, { id, prompt, skip, cause: event.id, depth, metadata })
      }),
    )
    for (const [n, run] of claimed.entries())
      if (run?.status === 'scheduled') this.work.dispatch(run, triggers[n] as TriggerRecord)
  }
}

/** The rendered prompt, or why the run is skipped. */
export function promptOf(
  { spec }: TriggerRecord,
  envelope: Envelope,
  depth: number,
): { readonly prompt: string; readonly skip?: Skip } {
  if (depth > MAX_DEPTH) {
    const text = `the event was caused by a chain of ${MAX_DEPTH} trigger runs (loop protection)`
    return { prompt: '', skip: { reason: 'trigger_depth', text } }
  }
  const prompt = renderTemplate(spec.prompt ?? '', envelope)
  if (prompt !== undefined && (prompt !== '' || spec.loop_target)) return { prompt }
  const reason = prompt === undefined ? 'prompt_too_large' : 'prompt_empty'
  const text = prompt === undefined ? 'the rendered prompt is larger than 1 MiB' : 'the rendered prompt is empty'
  return { prompt: '', skip: { reason, text } }
}

/** Derived from the trigger and its cause, so that a fire can be claimed only once. */
export const runId = (trigger: string, what: string) => `run_${hash('sha256', `${trigger}|${what}`).slice(0, 24)}`
