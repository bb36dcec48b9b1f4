import { AsyncLocalStorage } from 'node:async_hooks'
import { resolveSecret } from '../../../../kernel/kit/secret-ref.js'
import { type Exchange, type Identified, messageOf, type Route, type Written } from '../../../../kernel/plugin.js'
import type { StoredEvent } from '../../../platform/events/api.js'
import type { HookRun } from '../../../work/hooks/api.js'
import type { Recorded } from '../../../work/sessions/api.js'
import type { SpanAttributes } from '../api.js'
import type { K } from '../needs.js'
import { Endpoint, Headers, SampleRatio, ServiceName } from '../settings.js'
import { Newest, type SpanContext, spanContextOf, traceparentOf } from './context.js'
import type { ExporterState } from './exporter.js'
import { headersIn } from './headers.js'
import { markOutgoing } from './outgoing.js'
import type { OpenSpan, Tracer } from './tracer.js'

/** Remembered requests, events and records for their consequences, and concurrently open spans. */
const MOST_CAUSES = 10_000
const MOST_OPEN = 2000
/** Routes without traces: frequent scrapes and liveness checks would be most of the traces. */
const UNTRACED = new Set(['/metrics', '/api/status/identity'])

/** Hook events that happen within turns of agents. */
const IN_TURNS = /^(?:turn|message|tool|permission|prompt|context|event)\./

/** State of tracing; off without a configured collector. */
export type TracingState =
  | { readonly is: 'off' }
  | { readonly is: 'broken'; readonly error: string }
  | ({ readonly is: 'on'; readonly url: string } & ExporterState)

/** State while tracing is on. */
interface On {
  readonly tracer: Tracer
  readonly url: URL
  /** The current span of running code; asynchronous contexts have a cost, so there is none without a collector. */
  readonly current: AsyncLocalStorage<SpanContext>
  /** Spans of requests, events and records (`kind/id`) that can have consequences. */
  readonly causes: Newest<SpanContext>
  readonly requests: Newest<OpenSpan>
  /** Spans of turns by session. */
  readonly turns: Newest<OpenSpan>
  readonly runs: Newest<OpenSpan>
  /** Stops adding the span to outgoing requests. */
  readonly unmark: () => void
}

type EndOf = Parameters<OpenSpan['end']>[0]

/**
 * Creates spans from hooks, whose cause ids connect them. Without an endpoint, each function returns at its first line,
 * and no library is loaded.
 */
export class Traces {
  #on: On | undefined
  #error: string | undefined
  /** Serializes changes of the settings. */
  #configuring: Promise<void> = Promise.resolve()

  constructor(private readonly kernel: K) {}

  get isOn(): boolean {
    return this.#on !== undefined
  }

  get state(): TracingState {
    if (this.#error !== undefined) return { is: 'broken', error: this.#error }
    return this.#on ? { is: 'on', url: this.#on.url.href, ...this.#on.tracer.exporter.state } : { is: 'off' }
  }

  /** Starts, stops or restarts tracing according to the settings. */
  configure(): Promise<void> {
    this.#configuring = this.#configuring
      .then(() => this.#configure())
      .catch(error => {
        this.#error = messageOf(error)
        this.kernel.log.error('traces are off', { error: this.#error })
      })
    return this.#configuring
  }

  async #configure(): Promise<void> {
    const { kernel } = this
    const endpoint = kernel.config.get(Endpoint)
    await this.close()
    this.#error = undefined
    if (endpoint === '') return
    const url = new URL(endpoint)
    if (!url.pathname.endsWith('/v1/traces')) url.pathname = `${url.pathname.replace(/\/+$/, '')}/v1/traces`
    const module = await import('./tracer.js')
    const tracer = new module.Tracer({
      ...{ clock: kernel.clock, ids: kernel.ids, redact: kernel.redact, url },
      headers: () => this.#headers(),
      ratio: kernel.config.get(SampleRatio),
      resource: {
        'service.name': kernel.config.get(ServiceName),
        'service.version': kernel.needs.host.version,
        'service.instance.id': kernel.ids.uuid(),
        'process.pid': kernel.needs.host.pid,
      },
    })
    const open = () => new Newest<OpenSpan>(MOST_OPEN)
    const causes = new Newest<SpanContext>(MOST_CAUSES)
    const unmark = markOutgoing(url, () => this.traceparent())
    this.#on = {
      tracer,
      url,
      current: new AsyncLocalStorage(),
      causes,
      requests: open(),
      turns: open(),
      runs: open(),
      unmark,
    }
  }

  /** Sends the waiting spans, with a time limit. */
  async close(): Promise<void> {
    const on = this.#on
    this.#on = undefined
    on?.unmark()
    await on?.tracer.exporter.close()
  }

  async #headers(): Promise<Readonly<Record<string, string>>> {
    const reference = this.kernel.config.get(Headers)
    return reference === '' ? {} : headersIn(await resolveSecret(this.kernel, reference, Headers.path))
  }

  /** The current span if it is in the trace of the cause, or if the cause is unknown; else the cause's span. */
  spanContextOf(cause: string | undefined): SpanContext | undefined {
    const on = this.#on
    if (!on) return undefined
    const current = on.current.getStore()
    const named = cause === undefined ? undefined : on.causes.get(cause)
    return named && named.traceId !== current?.traceId ? named : current
  }

  traceparent(cause?: string): string | undefined {
    const spanContext = this.spanContextOf(cause)
    return spanContext && traceparentOf(spanContext)
  }

  span<T>(
    name: string,
    work: () => T,
    more: { readonly attributes?: SpanAttributes; readonly cause?: string | undefined } = {},
  ): T {
    const on = this.#on
    if (!on) return work()
    const { attributes = {}, cause } = more
    const span = on.tracer.start(name, { attributes, parent: this.spanContextOf(cause) })
    const failed = (error: unknown) => {
      span.end({ error: messageOf(error) })
      throw error
    }
    try {
      const result = on.current.run(span.context, work)
      if (!(result instanceof Promise)) {
        span.end()
        return result
      }
      return result.then(value => {
        span.end()
        return value
      }, failed) as T
    } catch (error) {
      return failed(error)
    }
  }

  /** Starts the span of an accepted request, in which its handler runs. */
  admit(incoming: Identified, { path, method }: Pick<Route, 'path' | 'method'>): undefined {
    const on = this.#on
    if (!on || UNTRACED.has(path) || on.requests.get(incoming.id)) return
    const parent = spanContextOf(incoming.headers.traceparent)
    const attributes = {
      'http.request.method': method,
      'http.route': path,
      'svc.door': incoming.door,
      'svc.request': incoming.id,
    }
    const span = on.tracer.start(`${method} ${path}`, { kind: 'server', parent, attributes })
    on.requests.set(incoming.id, span)
    on.causes.set(incoming.id, span.context)
    incoming.callBy(handle => on.current.run(span.context, handle))
  }

  replied({ id, status, owner, actor }: Exchange): void {
    this.#on?.requests.take(id)?.end({
      attributes: {
        ...(status !== undefined && { 'http.response.status_code': status }),
        ...(owner !== undefined && { 'svc.plugin': owner }),
        ...(actor && { 'svc.actor': actor.kind }),
      },
      ...(status === undefined && { error: 'the caller disconnected before the reply' }),
      ...(status !== undefined && status >= 500 && { error: `status ${status}` }),
    })
  }

  /** Records the trace of an appended event for its consequences, from the event's own cause. */
  event({ id, name, cause, payload }: StoredEvent): void {
    const on = this.#on
    if (!on) return
    const spanContext = this.spanContextOf(cause)
    if (spanContext) on.causes.set(id, spanContext)
    const run = runOf(name, Object(payload))
    if (!run) return
    if (run.begins) {
      const span = on.tracer.start(run.begins, { parent: spanContext, attributes: run.attributes })
      on.runs.set(run.id, span)
      on.causes.set(id, span.context)
      return
    }
    const span = on.runs.get(run.id)
    if (span) on.causes.set(id, span.context)
    if (run.ended !== undefined) on.runs.take(run.id)?.end(endOf(run.ended))
  }

  /** Records the trace of a written record. */
  written({ change }: Written): void {
    const on = this.#on
    const spanContext = on && this.spanContextOf(change.actor.cause)
    if (!spanContext) return
    const { kind, id } = change.verb === 'put' ? change.after : change.before
    on.causes.set(`${kind}/${id}`, spanContext)
  }

  /** Creates the span of a reconciliation pass; a pass without a traced request or event has none. */
  pass(kind: string, ids: readonly string[], failed: number, milliseconds: number): void {
    const on = this.#on
    if (!on) return
    const [parent, ...links] = ids.flatMap(id => on.causes.take(`${kind}/${id}`) ?? [])
    if (!parent) return
    const now = this.kernel.clock.now()
    const attributes = { 'svc.kind': kind, 'svc.records': ids.length, 'svc.failed': failed }
    const span = on.tracer.start(`reconcile ${kind}`, { parent, links, at: now - milliseconds, attributes })
    span.end({ at: now, ...(failed > 0 && { error: `${failed} of ${ids.length} records failed` }) })
  }

  hookRun({ hook, event, source, mode, outcome, sessionId, at, micros, error, cause }: HookRun): void {
    const on = this.#on
    if (!on) return
    const turn = IN_TURNS.test(event) ? on.turns.get(sessionId)?.context : undefined
    const parent = turn ?? this.spanContextOf(cause)
    const attributes = {
      'svc.hook': hook,
      'svc.event': event,
      'svc.source': source,
      'svc.mode': mode,
      'svc.outcome': outcome,
    }
    const span = on.tracer.start(`hook ${event}`, { parent, at: at - micros / 1000, attributes })
    span.end({ at, ...(outcome === 'failed' && { error: error ?? 'it failed' }) })
  }

  turnStarted({ sessionId, turnId, source, cause }: Recorded): void {
    const on = this.#on
    if (!on) return
    const parent = cause === undefined ? undefined : on.causes.get(cause)
    const attributes = {
      'svc.session': sessionId,
      'svc.turn': turnId,
      ...(source !== undefined && { 'svc.source': source }),
    }
    on.turns.take(sessionId)?.end({ error: 'it has no end' })
    on.turns.set(sessionId, on.tracer.start('agent turn', { parent, attributes }))
  }

  turnEnded({ sessionId, type, content }: Recorded): void {
    const status = type === 'error' ? 'failed' : String(content.status)
    this.#on?.turns.take(sessionId)?.end(endOf(status, type === 'error' ? String(content.error) : undefined))
  }

  sessionStopped(sessionId: string): void {
    this.#on?.turns.take(sessionId)?.end({ error: 'the session stopped' })
  }

  /** Header `traceparent` of a session's running turn. */
  ofTurn(sessionId: string): string | undefined {
    const spanContext = this.#on?.turns.get(sessionId)?.context ?? this.spanContextOf(undefined)
    return spanContext && traceparentOf(spanContext)
  }
}

const endOf = (status: string, error?: string): EndOf => ({
  attributes: { 'svc.status': status },
  ...((status === 'failed' || error !== undefined) && { error: error ?? status }),
})

interface Run {
  readonly id: string
  /** Name of the span that begins. */
  readonly begins?: string
  readonly ended?: string
  readonly attributes: SpanAttributes
}

const TASK_ENDS: Readonly<Record<string, string>> = {
  'task.run_completed': 'completed',
  'task.run_failed': 'failed',
  'task.run_operator_forced_fail': 'failed',
  'task.run_canceled': 'canceled',
}

/** The run of a job, trigger or task in an event's payload. */
function runOf(
  name: string,
  { id, run_id, job_id, trigger_id, task_id, status }: Readonly<Record<string, unknown>>,
): Run | undefined {
  if (name.startsWith('automation.run.')) {
    const [what, of] = job_id === undefined ? ['trigger', trigger_id] : ['job', job_id]
    const attributes = { 'svc.run': String(id), [`svc.${what}`]: String(of) }
    if (name === 'automation.run.created') return { id: String(id), begins: `${what} run`, attributes }
    return { id: String(id), attributes, ...(name === 'automation.run.ended' && { ended: String(status) }) }
  }
  if (!name.startsWith('task.run_') || run_id === undefined) return undefined
  const attributes = { 'svc.run': String(run_id), 'svc.task': String(task_id) }
  if (name === 'task.run_enqueued') return { id: String(run_id), begins: 'task run', attributes }
  const ended = TASK_ENDS[name]
  return { id: String(run_id), attributes, ...(ended !== undefined && { ended }) }
}
