import * as v from 'valibot'
import { type Clock, messageOf } from '../../../../kernel/plugin.js'
import type { BridgeProvider, DeliveryRequest, DeliveryResult, SettleResult } from '../adapter.js'

/** Milliseconds for an adapter to send a message; after that the result is unknown. */
export const REQUEST_MS = 5000
/** Milliseconds for an adapter to determine the result of a message. */
const SETTLE_MS = 15_000
/** Maximum pause that a platform may request. */
const LONGEST_PAUSE_MS = 86_400_000

const KINDS = [
  'unknown_destination',
  'missing_token',
  'permission_denied',
  'unsupported_capability',
  'transient_delivery_failure',
] as const
const remoteId = v.optional(v.pipe(v.string(), v.minLength(1), v.maxLength(1024)))

/** Adapters are external code, so their results are validated before they are stored. */
const Result = v.variant('status', [
  v.object({ status: v.literal('delivered'), remote_message_id: remoteId }),
  v.object({
    status: v.literal('not_sent'),
    permanent: v.boolean(),
    kind: v.fallback(v.picklist(KINDS), 'transient_delivery_failure'),
    message: v.string(),
    retry_after_ms: v.optional(v.pipe(v.number(), v.minValue(0), v.toMaxValue(LONGEST_PAUSE_MS))),
  }),
  v.object({ status: v.literal('unknown'), message: v.string() }),
])
const Settled = v.variant('outcome', [
  v.object({ outcome: v.literal('delivered'), remote_message_id: remoteId }),
  v.object({ outcome: v.literal('absent') }),
  v.object({ outcome: v.literal('unknown'), final: v.optional(v.boolean()) }),
])

/** Passes a message to an adapter. Never rejects: an unclear result is `unknown`. */
export function deliver(
  clock: Clock,
  provider: BridgeProvider,
  request: DeliveryRequest,
  signal: AbortSignal,
): Promise<DeliveryResult> {
  return bounded(clock, REQUEST_MS, signal, one => provider.deliver(request, one)).then(
    answer => {
      const read = v.safeParse(Result, answer)
      return read.success
        ? (read.output as DeliveryResult)
        : { status: 'unknown', message: 'the adapter gave no result' }
    },
    error => ({ status: 'unknown', message: messageOf(error) }),
  )
}

/** Asks an adapter for the result of a message. Never rejects. */
export function settle(
  clock: Clock,
  provider: BridgeProvider,
  request: DeliveryRequest & { readonly since: number },
  signal: AbortSignal,
): Promise<SettleResult> {
  const { settle: ask } = provider
  if (!ask) return Promise.resolve({ outcome: 'unknown' })
  return bounded(clock, SETTLE_MS, signal, one => ask.call(provider, request, one)).then(
    answer => {
      const read = v.safeParse(Settled, answer)
      return read.success ? (read.output as SettleResult) : { outcome: 'unknown' }
    },
    () => ({ outcome: 'unknown' }),
  )
}

/** Limits the time of an adapter's call, whether it obeys its signal or not. */
async function bounded<T>(
  clock: Clock,
  ms: number,
  outer: AbortSignal,
  call: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const late = new AbortController()
  const signal = AbortSignal.any([outer, late.signal])
  const timer = clock.timeout(ms, () => late.abort(new Error(`no answer in ${ms} ms`)), { unref: true })
  let abort: () => void = () => {}
  const aborted = new Promise<never>((_, reject) => {
    abort = () => reject(signal.reason)
    if (signal.aborted) abort()
    else signal.addEventListener('abort', abort, { once: true })
  })
  try {
    return await Promise.race([Promise.resolve().then(() => call(signal)), aborted])
  } finally {
    timer.cancel()
    signal.removeEventListener('abort', abort)
  }
}
