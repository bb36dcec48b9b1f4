/** `svc/plugins/telemetry`: figures that a monitoring system reads, and spans of traces. */
import * as v from 'valibot'
import { type Awaitable, registry, token } from '../../../kernel/plugin.js'

/** Values of labels by their names. */
export type Labels = Readonly<Record<string, string>>

/** A value of a counter, a gauge or an info, which is always 1. */
export interface Sample {
  readonly labels?: Labels
  readonly value: number
}

/** Values of a histogram. */
export interface Distribution {
  readonly labels?: Labels
  /** How many values are in each bucket and not in one before it: one number for each bound, and one for what is beyond the last. */
  readonly counts: readonly number[]
  readonly sum: number
}

/** What is said of a metric: plain data, from which the reference page is made. */
export interface MetricDeclaration {
  /**
   * As OpenMetrics has it, without `_total` or `_info`: `acme_leases`. Those of an extension begin with its vendor; `svc_` and `process_`
   * are of the package.
   */
  readonly name: string
  /** A counter only grows while the daemon runs; a gauge goes up and down; an info has facts in labels. */
  readonly type: 'counter' | 'gauge' | 'histogram' | 'info'
  readonly help: string
  /** Names of its labels. Their values are few: no ids, no paths, no texts of people. */
  readonly labels?: readonly string[]
  /** Upper bounds of the buckets of a histogram, ascending. */
  readonly bounds?: readonly number[]
}

/** A metric. Each request for the metrics reads it; a read takes 2 s at most. */
export interface Metric extends MetricDeclaration {
  readonly read: (signal: AbortSignal) => Awaitable<readonly (Sample | Distribution)[]>
}

const LABEL = v.pipe(v.string(), v.maxLength(64), v.regex(/^(?!le$|quantile$|__)[a-zA-Z_][a-zA-Z0-9_]*$/))
const MetricSchema = v.looseObject({
  name: v.pipe(v.string(), v.maxLength(128), v.regex(/^[a-z][a-z0-9_]*$/), v.regex(/^(?!.*_(total|info|created)$)/)),
  type: v.picklist(['counter', 'gauge', 'histogram', 'info']),
  help: v.pipe(v.string(), v.minLength(1), v.maxLength(300)),
  labels: v.optional(v.pipe(v.array(LABEL), v.maxLength(8))),
  bounds: v.optional(
    v.pipe(
      v.array(v.pipe(v.number(), v.finite())),
      v.minLength(1),
      v.maxLength(32),
      v.check(
        bounds => bounds.every((bound, n) => n === 0 || bound > (bounds[n - 1] as number)),
        'Expected ascending bounds',
      ),
    ),
  ),
  read: v.function(),
})

/** Contributes metrics to `GET /metrics`. One that throws, hangs or says what it did not declare is left out alone. */
export const Metrics = registry<Metric>('telemetry.metrics@1', MetricSchema)

/** What a span can say of itself; ids may stand there, secrets and texts of people may not. */
export type SpanAttributes = Readonly<Record<string, string | number | boolean>>

/** Metrics and traces for other plugins. */
export interface TelemetryApi {
  /** Whether spans are sent: an endpoint is configured. Where not, {@link span} only calls. */
  readonly isTracing: boolean
  /**
   * Calls `work` as a span of its own below the one that is current, or below that of the request or event that `cause` names. One
   * that throws is marked as failed.
   */
  span<T>(
    name: string,
    work: () => T,
    more?: { readonly attributes?: SpanAttributes; readonly cause?: string | undefined },
  ): T
  /** The header `traceparent` for what leaves the daemon; undefined where nothing is traced. */
  traceparent(cause?: string): string | undefined
  /** The same for what the turn of a session does, where one runs. */
  traceparentOfTurn(sessionId: string): string | undefined
}

export const Telemetry = token<TelemetryApi>('telemetry@1')
