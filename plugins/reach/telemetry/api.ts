/** `svc/plugins/telemetry`: metrics for monitoring systems, and spans of traces. */
import * as v from 'valibot'
import { type Awaitable, registry, token } from '../../../kernel/plugin.js'

/** Label values by name. */
export type Labels = Readonly<Record<string, string>>

/** A value of a counter, gauge or info; that of an info is always 1. */
export interface Sample {
  readonly labels?: Labels
  readonly value: number
}

/** Values of a histogram. */
export interface Distribution {
  readonly labels?: Labels
  /** Number of values in each bucket, not cumulative: one number per bound, and one beyond the last. */
  readonly counts: readonly number[]
  readonly sum: number
}

/** Declaration of a metric: plain data, from which the reference page is generated. */
export interface MetricDeclaration {
  /**
   * Name in OpenMetrics without `_total` or `_info`: `acme_leases`. Names of an extension begin with its vendor; `svc_`
   * and `process_` are reserved for the package.
   */
  readonly name: string
  /** A counter only grows while the daemon runs; a gauge goes up and down; an info has facts in its labels. */
  readonly type: 'counter' | 'gauge' | 'histogram' | 'info'
  readonly help: string
  /** Label names. Their values must be few: no ids, paths or texts of people. */
  readonly labels?: readonly string[]
  /** Upper bounds of a histogram's buckets, ascending. */
  readonly bounds?: readonly number[]
}

/** A metric. Each request for the metrics reads it, for at most 2 s. */
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

/** Contributes metrics to `GET /metrics`. One that throws, hangs or returns undeclared data is left out alone. */
export const Metrics = registry<Metric>('telemetry.metrics@1', MetricSchema)

/** Attributes of a span; they may contain ids, but no secrets or texts of people. */
export type SpanAttributes = Readonly<Record<string, string | number | boolean>>

/** Metrics and traces for other plugins. */
export interface TelemetryApi {
  /** Whether spans are sent because an endpoint is configured. Otherwise {@link span} only calls `work`. */
  readonly isTracing: boolean
  /**
   * Calls `work` in a new span below the current one, or below that of the request or event named by `cause`. An error
   * marks the span as failed.
   */
  span<T>(
    name: string,
    work: () => T,
    more?: { readonly attributes?: SpanAttributes; readonly cause?: string | undefined },
  ): T
  /** The header `traceparent` for outgoing requests; undefined outside a trace. */
  traceparent(cause?: string): string | undefined
  /** The header `traceparent` for the running turn of a session. */
  traceparentOfTurn(sessionId: string): string | undefined
}

export const Telemetry = token<TelemetryApi>('telemetry@1')
