import { type Tracer as OtelTracer, ROOT_CONTEXT, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api'
import { resourceFromAttributes } from '@opentelemetry/resources'
import {
  ParentBasedSampler,
  type ReadableSpan,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace'
import type { Ids, Redact } from '../../../../kernel/plugin.js'
import type { SpanAttributes } from '../api.js'
import type { SpanContext } from './context.js'
import { Exporter, type ExporterContext } from './exporter.js'

const KINDS = { internal: SpanKind.INTERNAL, server: SpanKind.SERVER, client: SpanKind.CLIENT }
const LONGEST_TEXT = 500

export interface TracerContext extends ExporterContext {
  readonly ids: Ids
  readonly redact: Pick<Redact, 'text'>
  /** Attributes of the daemon itself. */
  readonly resource: SpanAttributes
  /** Sampling ratio of traces that begin here, 0 to 1. */
  readonly ratio: number
}

export interface SpanStart {
  readonly kind?: keyof typeof KINDS
  readonly parent?: SpanContext | undefined
  readonly links?: readonly SpanContext[]
  readonly attributes?: SpanAttributes
  /** Epoch milliseconds; default: now. */
  readonly at?: number
}

/** A span that has begun. */
export interface OpenSpan {
  readonly context: SpanContext
  end(more?: { readonly attributes?: SpanAttributes; readonly error?: string | undefined; readonly at?: number }): void
}

/** Creates spans with OpenTelemetry's library, with the kernel's clock and ids, and exports them. */
export class Tracer {
  readonly exporter: Exporter
  readonly #tracer: OtelTracer

  constructor(private readonly context: TracerContext) {
    const { ids, resource, ratio } = context
    this.exporter = new Exporter(context)
    const provider = new TracerProvider({
      resource: resourceFromAttributes({ ...resource }),
      sampler: new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(ratio) }),
      idGenerator: { generateTraceId: () => ids.hex(16), generateSpanId: () => ids.hex(8) },
      spanLimits: {
        attributeCountLimit: 32,
        attributeValueLengthLimit: LONGEST_TEXT,
        eventCountLimit: 8,
        linkCountLimit: 32,
      },
      spanProcessors: [
        {
          onStart: () => {},
          onEnd: (span: ReadableSpan) => this.exporter.add(span),
          forceFlush: async () => {},
          shutdown: async () => {},
        },
      ],
    })
    this.#tracer = provider.getTracer('svc')
  }

  start(name: string, { kind = 'internal', parent, links = [], attributes = {}, at }: SpanStart = {}): OpenSpan {
    const { clock } = this.context
    const [startTime, began] = [at ?? clock.now(), clock.monotonic()]
    const options = {
      kind: KINDS[kind],
      startTime,
      attributes: this.#safe(attributes),
      links: links.map(context => ({ context })),
    }
    const span = this.#tracer.startSpan(
      this.#text(name),
      options,
      parent ? trace.setSpanContext(ROOT_CONTEXT, parent) : ROOT_CONTEXT,
    )
    return {
      context: span.spanContext(),
      end: ({ attributes: more, error, at: end } = {}) => {
        if (more) span.setAttributes(this.#safe(more))
        if (error !== undefined) span.setStatus({ code: SpanStatusCode.ERROR, message: this.#text(error) })
        // The duration is measured with the monotonic clock, because the wall clock may be changed meanwhile.
        span.end(end ?? startTime + Math.max(0, clock.monotonic() - began))
      },
    }
  }

  #safe(attributes: SpanAttributes): SpanAttributes {
    return Object.fromEntries(
      Object.entries(attributes).map(([name, value]) => [name, typeof value === 'string' ? this.#text(value) : value]),
    )
  }

  #text(text: string): string {
    return this.context.redact.text(text, LONGEST_TEXT)
  }
}
