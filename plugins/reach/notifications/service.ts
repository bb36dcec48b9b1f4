import { shown } from '../../../kernel/kit/text.js'
import { type Actor, KernelErrors, messageOf, type Tx } from '../../../kernel/plugin.js'
import type { NotifyBody, NotifyReply } from '../../../schemas/notifications.js'
import { AGENT_SESSION, IdentityErrors } from '../../access/identity/api.js'
import type { StoredEvent } from '../../platform/events/api.js'
import type { Recorded } from '../../work/sessions/api.js'
import type { DeliveryStanding } from '../bridges/api.js'
import type { NotificationsApi } from './api.js'
import { Attention } from './attention/attention.js'
import { Mishaps } from './attention/mishaps.js'
import { QuestionEvents } from './attention/question-events.js'
import { isTrouble, Troubles } from './attention/troubles.js'
import { checks } from './checks.js'
import { Dispatcher } from './dispatch/dispatcher.js'
import type { K } from './needs.js'
import { Notices } from './notices/notices.js'
import { Presets } from './presets/presets.js'
import { Subscriptions } from './subscriptions/subscriptions.js'

type Headers = Readonly<Record<string, string | undefined>>

/** Attention items and notifications. */
export class NotificationsService implements NotificationsApi {
  readonly presets: Presets
  readonly dispatcher: Dispatcher
  readonly attention: Attention
  readonly mishaps: Mishaps
  readonly notices: Notices
  readonly subscriptions: Subscriptions
  readonly #troubles: Troubles
  readonly #questions: QuestionEvents

  constructor(private readonly kernel: K) {
    this.presets = new Presets(kernel, () => this.dispatcher.wake())
    this.subscriptions = new Subscriptions(kernel, () => this.dispatcher.wakeSoon())
    this.dispatcher = new Dispatcher(kernel, this.presets, {
      openItems: () => this.attention.entries().map(({ id }) => id),
      besides: () => this.subscriptions.send(),
    })
    this.notices = new Notices(kernel)
    this.#troubles = new Troubles(kernel)
    this.attention = new Attention(kernel, this.#troubles, this.notices)
    this.mishaps = new Mishaps(this.attention)
    this.#questions = new QuestionEvents(kernel)
  }

  start(): Promise<void> {
    return this.presets.start()
  }

  entries() {
    return this.attention.entries()
  }

  unseen(workspaceId?: string) {
    return this.attention.unseen(workspaceId)
  }

  /** Handles an appended event in its open transaction, which must not fail because of notifications. */
  written(t: Tx, event: StoredEvent): undefined {
    try {
      if (isTrouble(event.name)) this.#troubles.note(t, event)
      this.subscriptions.note(t, event)
      if (this.dispatcher.names(event.name)) this.kernel.db.onDurable(t, this.dispatcher.wakeSoon)
    } catch (error) {
      this.kernel.log.error('an event is missing in the notifications', {
        event: event.name,
        error: messageOf(error),
      })
    }
  }

  /**
   * Sends a notice of a session's agent to people. @throws Fault `identity_required` (401), `identity_stale` (401),
   * `notice_invalid` (422)
   */
  async notify(actor: Actor, headers: Headers, body: NotifyBody): Promise<NotifyReply> {
    const id = actor.origin === AGENT_SESSION ? actor.id : headers['x-service-session-id']
    if (id === undefined)
      throw KernelErrors.identity_required('only the agent of a session can report this; the caller is the operator', {
        next: 'run it inside a session, where SVC_SOCKET is set',
      })
    const session = this.kernel.needs.sessions.current?.get(id)
    if (!session) throw IdentityErrors.identity_stale(`there is no session ${shown(id)}`)
    return this.notices.notify(session, body, actor)
  }

  /** Handles the end of a bridge message. */
  deliveryEnded(key: string, { state, reason }: DeliveryStanding): Promise<void> {
    return this.subscriptions.ended(key, state, reason)
  }

  recorded(event: Recorded): Promise<void> | undefined {
    return this.#questions.recorded(event)
  }

  /** The doctor's items. */
  readonly check = async () => [...this.mishaps.findings(), ...checks(this.kernel, this.presets)]
}
