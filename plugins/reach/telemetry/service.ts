import { type Exchange, iso, type Tx } from '../../../kernel/plugin.js'
import type { TelemetryReply } from '../../../schemas/telemetry.js'
import type { StoredEvent } from '../../platform/events/api.js'
import type { AssembledPrompt, Recorded, SessionStart } from '../../work/sessions/api.js'
import { Metrics, type TelemetryApi } from './api.js'
import { builtIn } from './metrics/built-in.js'
import { Collecting } from './metrics/collect.js'
import { Counts } from './metrics/counts.js'
import { CONTENT_TYPES, exposed, expositionFor } from './metrics/exposition.js'
import { LoopDelay } from './metrics/process.js'
import type { K } from './needs.js'
import { Endpoint, SampleRatio } from './settings.js'
import { Traces } from './traces/traces.js'

/** Metrics for a monitoring system, and spans for a trace collector. */
export class TelemetryService implements TelemetryApi {
  readonly counts: Counts
  readonly metrics
  readonly traces: Traces
  readonly #collecting: Collecting

  constructor(private readonly kernel: K) {
    this.counts = new Counts(kernel)
    this.traces = new Traces(kernel)
    const loopDelay = new LoopDelay(kernel.clock)
    kernel.scope.defer('loop delay', () => loopDelay.end())
    kernel.scope.defer('traces', () => this.traces.close())
    this.metrics = builtIn(kernel, this.counts, { loopDelay, spans: () => this.#spans() })
    this.#collecting = new Collecting(kernel, (owner, where, error) => {
      this.counts.collectFailures.add([owner])
      kernel.needs.faults(owner, `metric ${where}`, error)
    })
  }

  start(): void {
    // Not awaited: spans begin when tracing is ready.
    if (this.kernel.config.get(Endpoint) !== '') void this.traces.configure()
  }

  get isTracing(): boolean {
    return this.traces.isOn
  }

  span: TelemetryApi['span'] = (name, work, more) => this.traces.span(name, work, more)

  traceparent(cause?: string): string | undefined {
    return this.traces.traceparent(cause)
  }

  traceparentOfTurn(sessionId: string): string | undefined {
    return this.traces.ofTurn(sessionId)
  }

  /** All metrics in the format for an `Accept` header. */
  async exposition(accept: string | undefined): Promise<{ readonly text: string; readonly type: string }> {
    const as = expositionFor(accept)
    return { text: exposed(await this.#collecting.families(), as), type: CONTENT_TYPES[as] }
  }

  status(): TelemetryReply['telemetry'] {
    const { kernel, traces, counts } = this
    const failed = counts.collectFailures.read().reduce((sum, { value }) => sum + value, 0)
    const { state } = traces
    const { sent = 0, waiting = 0, dropped = 0, refused = 0, failedSince, sentAt } = state.is === 'on' ? state : {}
    const error = state.is === 'off' ? undefined : state.error
    return {
      metrics: { path: '/metrics', count: kernel.collect(Metrics).length, failed },
      traces: {
        state: state.is === 'on' ? (error === undefined ? 'ok' : 'failing') : state.is,
        ...(state.is === 'on' && { endpoint: state.url }),
        sample_ratio: kernel.config.get(SampleRatio),
        ...{ sent, waiting, dropped, refused },
        ...(error !== undefined && { error: kernel.redact.text(error, 500) }),
        ...(failedSince !== undefined && { failing_since: iso(failedSince) }),
        ...(sentAt !== undefined && { sent_at: iso(sentAt) }),
      },
    }
  }

  replied(exchange: Exchange): void {
    this.counts.request(exchange)
    this.traces.replied(exchange)
  }

  /** Handles an appended event; it counts when it is durable. */
  written(t: Tx, event: StoredEvent): undefined {
    this.traces.event(event)
    this.kernel.db.onDurable(t, () => this.counts.event(event))
  }

  passed(kind: string, ids: readonly string[], failed: number, milliseconds: number): void {
    this.counts.pass(kind, failed)
    this.traces.pass(kind, ids, failed, milliseconds)
  }

  turnStarted(event: Recorded): void {
    this.counts.turnStarted(event)
    this.traces.turnStarted(event)
  }

  turnEnded(event: Recorded): void {
    this.counts.turnEnded(event)
    this.traces.turnEnded(event)
  }

  sessionStopped(id: string): void {
    this.counts.sessionStopped(id)
    this.traces.sessionStopped(id)
  }

  /** Adds the current span to an agent's environment, in the variable that OpenTelemetry reads. */
  prepared(start: SessionStart, sessionId: string): SessionStart | undefined {
    const traceparent = this.traces.ofTurn(sessionId)
    return traceparent === undefined ? undefined : { ...start, env: { ...start.env, TRACEPARENT: traceparent } }
  }

  /** Adds the current span to a prompt, in the member of `_meta` that ACP reserves for it. */
  prompting(prompt: AssembledPrompt, sessionId: string): AssembledPrompt | undefined {
    const traceparent = this.traces.ofTurn(sessionId)
    return traceparent === undefined ? undefined : { ...prompt, meta: { ...prompt.meta, traceparent } }
  }

  #spans(): Readonly<Record<string, number>> {
    const { sent, dropped, refused } = this.status().traces
    return this.traces.isOn ? { sent, dropped, refused } : {}
  }
}
