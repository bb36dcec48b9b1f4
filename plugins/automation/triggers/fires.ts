import { createHash } from 'node:crypto'
import type { DiskSpace, PluginKernel } from '../../../kernel/plugin.js'
import type { Daemon } from '../../daemon/api.js'
import { type GapEvent, isGap, type StoredEvent } from '../../events/api.js'
import type { Claims } from '../claim.js'
import type { Skip } from '../runs/room.js'
import type { RunRow } from '../runs/run-row.js'
import type { Envelope } from './envelope.js'
import type { Observed } from './observed.js'
import { renderTemplate } from './prompt-template.js'
import type { TriggerRecord } from './trigger-kind.js'
import type { Triggers } from './triggers.js'

/** Runs of triggers that may follow from each other; one more would be a trigger that feeds itself. */
const MAX_DEPTH = 3

type Kernel = PluginKernel<{
  disk: typeof DiskSpace
  daemon: typeof Daemon
}>

/** What the fires of triggers ask of the plugin. */
export interface FireWork {
  readonly observed: Observed
  readonly triggers: Triggers
  readonly claims: Claims
  /** False: automation is switched off, and what happens goes by. */
  readonly enabled: boolean
  /** Starts the work of runs that are durably claimed. */
  dispatch(run: RunRow, trigger: TriggerRecord): void
}

/** Claims a run for each trigger that an event of the log is about. */
export class TriggerFires {
  constructor(
    private readonly kernel: Kernel,
    private readonly work: FireWork,
  ) {}

  /**
   * Fires what an event fires. A run has its id from trigger and event, so that an event that is handed over again after a
   * crash fires nothing twice. Throws when it cannot be written now: then it comes again.
   */
  async observe(event: StoredEvent | GapEvent): Promise<void> {
    if (!this.work.enabled) return
    if (isGap(event)) {
      this.kernel.log.warn(`${event.payload.missed} events are over 7 days old and fire no trigger`)
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

/** The rendered prompt, or why the run must not be. */
export function promptOf(
  { spec }: TriggerRecord,
  envelope: Envelope,
  depth: number,
): { readonly prompt: string; readonly skip?: Skip } {
  if (depth > MAX_DEPTH) {
    const text = `${MAX_DEPTH} runs of triggers led to it one by the other: a trigger must not feed itself`
    return { prompt: '', skip: { reason: 'trigger_depth', text } }
  }
  const prompt = renderTemplate(spec.prompt ?? '', envelope)
  if (prompt !== undefined && (prompt !== '' || spec.loop_target)) return { prompt }
  const reason = prompt === undefined ? 'prompt_too_large' : 'prompt_empty'
  const text = prompt === undefined ? 'the rendered prompt has over 1 MiB' : 'the rendered prompt has no text'
  return { prompt: '', skip: { reason, text } }
}

/** Made of the trigger and what fired it, so that it can be claimed only once. */
export const runId = (trigger: string, what: string) =>
  `run_${createHash('sha256').update(`${trigger}|${what}`).digest('hex').slice(0, 24)}`
