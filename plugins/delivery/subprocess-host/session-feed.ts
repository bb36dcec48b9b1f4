import * as v from 'valibot'
import { clip } from '../../../kernel/kit/text.js'
import { messageOf, turn } from '../../../kernel/plugin.js'
import type { SessionsApi } from '../../work/sessions/api.js'
import { checkedParams, type HostCaller } from './host-call.js'
import { rpcError } from './rpc-error.js'
import type { ProcessHost } from './runtime.js'

/** Subscriptions per process. */
const MAX_SUBSCRIPTIONS = 64
/** Events that may be written while a process is busy reading; beyond this it gets a gap and the newest {@link KEPT}. */
const MAX_BEHIND = 1000
const KEPT = 100
/** Method of the notifications. */
const EVENT = 'sessions/event'

const id = v.pipe(v.string(), v.minLength(1), v.maxLength(128))

/** Parameters of `sessions/subscribe`. */
export const SubscribeParams = v.strictObject({
  workspace_id: id,
  session_id: id,
  after_sequence: v.optional(
    v.pipe(
      v.number(),
      v.safeInteger(),
      v.minValue(0),
      v.description('events after this sequence; default: new events only'),
    ),
  ),
  types: v.optional(
    v.pipe(v.array(id), v.minLength(1), v.maxLength(50), v.description('only events of these types; default: all')),
  ),
})

/** Parameters of `sessions/unsubscribe`. */
export const UnsubscribeParams = v.strictObject({ subscription_id: id })

interface Subscription {
  readonly id: string
  readonly sessionId: string
  readonly types: ReadonlySet<string> | undefined
  readonly by: HostCaller
  readonly ended: AbortController
}

/** Sends events of sessions to processes as notifications, at the speed at which each process reads. */
export class SessionFeed {
  readonly #subscriptions = new Map<string, Subscription>()

  constructor(private readonly host: ProcessHost) {}

  /** @param check throws if the caller may not read the session */
  async subscribe(by: HostCaller, params: object, check: (params: object) => Promise<unknown>): Promise<unknown> {
    const { workspace_id, session_id: sessionId, after_sequence, types } = checkedParams(SubscribeParams, params)
    await check({ workspace_id, session_id: sessionId })
    if (this.#subscriptions.size >= MAX_SUBSCRIPTIONS)
      throw rpcError('too_many_requests', `${MAX_SUBSCRIPTIONS} subscriptions at a time; close one of them`)
    const { current: sessions } = this.host.needs.sessions
    if (!sessions) throw rpcError('method_unavailable', 'sessions/subscribe: the plugin sessions does not run')
    const { last } = await sessions.follow(sessionId, Number.MAX_SAFE_INTEGER, AbortSignal.abort())
    by.signal.throwIfAborted()
    const subscription: Subscription = {
      id: this.host.ids.id('sub'),
      sessionId,
      types: types && new Set(types),
      by,
      ended: new AbortController(),
    }
    this.#subscriptions.set(subscription.id, subscription)
    void this.#run(subscription, sessions, (after_sequence ?? last) + 1)
    return { subscription_id: subscription.id, last_sequence: last }
  }

  async unsubscribe(by: HostCaller, params: object): Promise<unknown> {
    const { subscription_id: subscriptionId } = checkedParams(UnsubscribeParams, params)
    const found = this.#subscriptions.get(subscriptionId)
    if (found?.by.signal === by.signal) {
      found.ended.abort()
      this.#subscriptions.delete(subscriptionId)
    }
    return {}
  }

  async #run(subscription: Subscription, sessions: SessionsApi, from: number): Promise<void> {
    const { by, ended, id: subscription_id } = subscription
    const over = () => ended.abort()
    by.signal.addEventListener('abort', over, { once: true })
    const notify = (more: object) => (ended.signal.aborted ? undefined : by.notify(EVENT, { subscription_id, ...more }))
    try {
      // The response with the subscription's id has to be sent first.
      await turn()
      await this.#send(subscription, sessions, from, notify)
    } catch (error) {
      const message = clip(messageOf(error), 500)
      await Promise.resolve(notify({ ended: { reason: 'failed', message } })).catch(() => {})
    } finally {
      by.signal.removeEventListener('abort', over)
      this.#subscriptions.delete(subscription_id)
    }
  }

  async #send(
    { sessionId, types, ended: { signal } }: Subscription,
    sessions: SessionsApi,
    from: number,
    notify: (more: object) => Promise<void> | undefined,
  ): Promise<void> {
    for (let next = from, known: number | undefined; !signal.aborted; ) {
      const page = await sessions.follow(sessionId, next, signal)
      if (signal.aborted) return
      if (page.isOver) {
        await notify({ ended: { reason: 'stopped' } })
        return
      }
      // More events were written while the process read the previous page than it may lag behind.
      if (known !== undefined && page.last - known > MAX_BEHIND) {
        const to_sequence = page.last - KEPT
        await notify({ gap: { from_sequence: next, to_sequence } })
        next = to_sequence + 1
        known = page.last
        continue
      }
      known = page.last
      for (const event of page.events) if (!types || types.has(event.type)) await notify({ event })
      next = page.next
    }
  }
}
