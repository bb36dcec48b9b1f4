/** Identity of a span in its trace, in W3C form. */
export interface SpanContext {
  readonly traceId: string
  readonly spanId: string
  /** 1: the trace is sampled. */
  readonly traceFlags: number
  readonly isRemote?: boolean
}

const TRACEPARENT = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/

/** The span in a header `traceparent`; undefined for an invalid one, which is dropped. */
export function spanContextOf(header: unknown): SpanContext | undefined {
  const [, traceId = '', spanId = '', flags = ''] = typeof header === 'string' ? (TRACEPARENT.exec(header) ?? []) : []
  // Ids of only zeros are invalid, as are texts without a match.
  if (/^0*$/.test(traceId) || /^0*$/.test(spanId)) return undefined
  return { traceId, spanId, traceFlags: Number.parseInt(flags, 16) & 1, isRemote: true }
}

export const traceparentOf = ({ traceId, spanId, traceFlags }: SpanContext): string =>
  `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`

/** The newest values by id; the oldest ones are dropped beyond the limit. */
export class Newest<T> {
  readonly #all = new Map<string, T>()

  constructor(private readonly most: number) {}

  get(id: string): T | undefined {
    return this.#all.get(id)
  }

  set(id: string, of: T): void {
    this.#all.delete(id)
    this.#all.set(id, of)
    if (this.#all.size <= this.most) return
    for (const oldest of this.#all.keys()) {
      this.#all.delete(oldest)
      break
    }
  }

  /** Takes it out. */
  take(id: string): T | undefined {
    const of = this.#all.get(id)
    this.#all.delete(id)
    return of
  }

  get size(): number {
    return this.#all.size
  }
}
