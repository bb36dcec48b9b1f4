import * as v from 'valibot'
import { type Answer, HttpEndpoint, type Received } from '../../../harness/http-endpoint.js'

const hex = (digits: number) => v.pipe(v.string(), v.regex(new RegExp(`^[0-9a-f]{${digits}}$`)), v.regex(/[^0]/))
const Nanoseconds = v.pipe(v.string(), v.regex(/^\d{16,20}$/))
const Value = v.union([
  v.strictObject({ stringValue: v.string() }),
  v.strictObject({ boolValue: v.boolean() }),
  v.strictObject({ intValue: v.union([v.number(), v.string()]) }),
  v.strictObject({ doubleValue: v.number() }),
])
const Attribute = v.strictObject({ key: v.pipe(v.string(), v.minLength(1)), value: Value })
const SpanSchema = v.strictObject({
  traceId: hex(32),
  spanId: hex(16),
  parentSpanId: v.optional(hex(16)),
  traceState: v.optional(v.string()),
  flags: v.optional(v.number()),
  name: v.pipe(v.string(), v.minLength(1)),
  kind: v.picklist([1, 2, 3, 4, 5]),
  startTimeUnixNano: Nanoseconds,
  endTimeUnixNano: Nanoseconds,
  attributes: v.array(Attribute),
  droppedAttributesCount: v.number(),
  events: v.array(v.unknown()),
  droppedEventsCount: v.number(),
  links: v.array(v.looseObject({ traceId: hex(32), spanId: hex(16) })),
  droppedLinksCount: v.number(),
  status: v.object({ code: v.picklist([0, 1, 2]), message: v.optional(v.string()) }),
})
/** ExportTraceServiceRequest of OTLP 1, as JSON. */
const Export = v.strictObject({
  resourceSpans: v.array(
    v.strictObject({
      resource: v.object({ attributes: v.array(Attribute) }),
      scopeSpans: v.array(
        v.strictObject({
          scope: v.looseObject({ name: v.string() }),
          spans: v.array(SpanSchema),
          schemaUrl: v.optional(v.string()),
        }),
      ),
      schemaUrl: v.optional(v.string()),
    }),
  ),
})

/** A span as it came to the collector. */
export interface CollectedSpan {
  readonly name: string
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId: string | undefined
  readonly kind: number
  readonly attributes: Readonly<Record<string, unknown>>
  readonly failed: string | undefined
  readonly ms: number
  readonly links: number
}

/** A collector of OTLP over HTTP that holds what it is sent to the schema of the protocol. */
export class Collector {
  readonly spans: CollectedSpan[] = []
  readonly resources: Readonly<Record<string, unknown>>[] = []
  /** Why something that came is not of the protocol. */
  readonly wrong: string[] = []

  private constructor(private endpoint: HttpEndpoint | undefined) {}

  /** @param answer of each request; default: all are taken */
  static async start(
    answer: (request: Received) => Answer | Promise<Answer> = () => ({ body: {} }),
  ): Promise<Collector> {
    const collector = new Collector(undefined)
    collector.endpoint = await HttpEndpoint.start(async request => {
      const reply = await answer(request)
      if ((reply.status ?? 200) === 200 && !reply.cut) collector.#take(request)
      return reply
    })
    return collector
  }

  get url(): string {
    return `http://127.0.0.1:${this.endpoint?.port}`
  }

  get received(): readonly Received[] {
    return this.endpoint?.received ?? []
  }

  named(name: string | RegExp): CollectedSpan[] {
    return this.spans.filter(span => (typeof name === 'string' ? span.name === name : name.test(span.name)))
  }

  async close(): Promise<void> {
    await this.endpoint?.close()
  }

  #take({ method, path, headers, body }: Received): void {
    if (method !== 'POST' || path !== '/v1/traces') this.wrong.push(`${method} ${path}`)
    if (headers['content-type'] !== 'application/json') this.wrong.push(`content-type ${headers['content-type']}`)
    const { success, output, issues } = v.safeParse(Export, JSON.parse(body))
    if (!success) {
      this.wrong.push(v.summarize(issues))
      return
    }
    for (const { resource, scopeSpans } of output.resourceSpans) {
      this.resources.push(valuesOf(resource.attributes))
      for (const span of scopeSpans.flatMap(({ spans }) => spans)) {
        const { name, traceId, spanId, parentSpanId, kind, status, links } = span
        const ms = Number(BigInt(span.endTimeUnixNano) - BigInt(span.startTimeUnixNano)) / 1e6
        const failed = status.code === 2 ? (status.message ?? '') : undefined
        const attributes = valuesOf(span.attributes)
        this.spans.push({ name, traceId, spanId, parentSpanId, kind, attributes, failed, ms, links: links.length })
      }
    }
  }
}

const valuesOf = (attributes: readonly v.InferOutput<typeof Attribute>[]) =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0] as unknown]))
