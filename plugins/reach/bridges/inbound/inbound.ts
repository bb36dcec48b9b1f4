import { Alarm } from '../../../../kernel/kit/alarm.js'
import { backoff } from '../../../../kernel/kit/backoff.js'
import { SerialBy } from '../../../../kernel/kit/serial.js'
import { faultOf, messageOf, type Tx } from '../../../../kernel/plugin.js'
import type { QueuedTurn, SessionsApi } from '../../../work/sessions/api.js'
import { BridgeErrors, type InboundAttachment, type InboundEvent, type IngestResult } from '../api.js'
import type { Deliveries } from '../delivery/delivery.js'
import type { TurnEnd } from '../delivery/projection.js'
import type { Delivery } from '../delivery/table.js'
import type { Instance, Instances } from '../instances/instances.js'
import type { K } from '../needs.js'
import { Conversations, plain } from './conversations.js'
import { eventOf, isTooLong, keptOf, MAX_TEXT } from './event.js'
import { PairLimit } from './pair-limit.js'
import { judge } from './policy.js'
import { Questions } from './questions.js'
import { addressOf, type Conversation, conversationOf } from './routing.js'
import { type EventState, type InboxRow, inbox, routes } from './table.js'
import { type Word, wordOf } from './words.js'

/** Milliseconds for which an event is remembered to detect repetitions. */
const KEPT_MS = 86_400_000
/** Milliseconds that an adapter waits until an event is settled. */
const WAIT_MS = 20_000
/** Events per instance that wait for their sessions. */
const MAX_RECEIVED = 200
/** Base64 characters of files in transit to sessions. */
const MAX_FILES_SIZE = 64 * 1024 * 1024
/** Minimum interval for recording ignored events as a sign of life. */
const HEARD_MS = 60_000
/** Milliseconds after which passing an event to a session is given up. */
const GIVEN_UP_MS = 600_000
/** Milliseconds that an event whose files were lost in a restart waits for its repetition. */
const FILES_MS = 120_000
const RETRY = { firstMs: 1000, longestMs: 30_000 }
/** Maximum prompts for one event, if earlier ones never reached an agent. */
const MAX_ATTEMPTS = 3
const SWEEP_BATCH = 1000
const SWEEP = '\u0000sweep'

/** The session cannot be used any more; a new one replaces it. */
const GONE: ReadonlySet<string> = new Set([
  'session_stopped',
  'session_archived',
  'session_not_found',
  'session_journal_damaged',
])
/** A temporary lack of capacity. */
const LATER: ReadonlySet<string> = new Set([
  'session_limit',
  'draining',
  'home_held',
  'disk_full',
  'store_failed',
  'internal',
])

/** Outcome of an event that is not a prompt. */
interface Settled {
  readonly state: Exclude<EventState, 'received' | 'prompted'>
  readonly reason: string
  /** Text for the chat. */
  readonly say?: string
}

type Workplaced = Instance & { readonly workspaceId: string }

const ignored = (reason: string): Settled => ({ state: 'ignored', reason })
const answered = (reason: string, say: string): Settled => ({ state: 'answered', reason, say })

/** Inbound events of platforms: each is stored in the inbox before it is processed, and has exactly one outcome. */
export class Inbound {
  readonly conversations: Conversations
  readonly questions: Questions
  readonly #pairs = new PairLimit()
  /** Senders by the answers they wait for. */
  readonly #askers = new Map<string, string>()
  readonly #inFlight = new Map<string, Promise<IngestResult>>()
  readonly #ordered = new SerialBy()
  readonly #alarm: Alarm
  #fileSize = 0
  /** Last recording of an ignored event, by instance. */
  readonly #heardAt = new Map<string, number>()
  #isClosed = false

  constructor(
    private readonly kernel: K,
    private readonly instances: Instances,
    private readonly deliveries: Deliveries,
  ) {
    this.conversations = new Conversations(kernel)
    this.questions = new Questions(kernel, instances, deliveries)
    this.#alarm = new Alarm(kernel.clock, { retryMs: 10_000 })
    deliveries.answers.listener = {
      heard: (delivery, { type, content }) => this.questions.heard(delivery, type, content),
      ended: (t, delivery, end) => this.#ended(t, delivery, end),
      over: delivery => this.#over(delivery),
    }
  }

  /**
   * Accepts an event; resolves when it is settled, durably.
   * @throws Fault `bridge_event_invalid`, `bridge_not_found`, `bridge_not_accepting`
   */
  async ingest(extension: string, value: unknown): Promise<IngestResult> {
    const event = eventOf(value)
    const { bridge_instance_id: bridgeId, idempotency_key: key } = event
    const instance = this.instances.get(bridgeId)
    if (instance?.extension !== extension)
      throw BridgeErrors.bridge_not_found(`extension ${extension} has no bridge ${JSON.stringify(bridgeId)}`)
    this.#checkOpen(bridgeId)
    const nothing = this.#nothingIn(instance, event)
    if (nothing !== undefined) return this.#passed(event, nothing)
    const known = inbox.get(this.kernel.db, { bridgeId, key })
    if (known && known.state !== 'received') return resultOf(known, 'duplicate')
    const running = this.#inFlight.get(nameOf(bridgeId, key))
    if (running) return { ...(await this.#waited(running)), outcome: 'duplicate' }
    const size = (event.attachments ?? []).reduce((sum, { data }) => sum + data.length, 0)
    if (size > 0 && this.#fileSize + size > MAX_FILES_SIZE)
      throw BridgeErrors.bridge_not_accepting('too many files are being transferred; send the event again later')
    this.#fileSize += size
    const work = this.#process(known, event)
    void work.catch(() => {}).finally(() => (this.#fileSize -= size))
    return this.#waited(work)
  }

  /** Continues the work of an earlier daemon and retries failed events until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { db, clock, log } = this.kernel
    for (const row of inbox.all(db, { state: 'received' }, 'ORDER BY received_at, id')) {
      if (row.files > 0) this.#alarm.set(row.id, clock.now() + FILES_MS)
      else this.#resume(row)
    }
    this.#alarm.set(SWEEP, this.#nextSweep())
    await this.#alarm.run(signal, {
      fire: async keys => {
        for (const id of keys) {
          if (id === SWEEP) await this.#sweep()
          const row = id === SWEEP ? undefined : inbox.get(db, { id })
          if (row?.state === 'received') this.#resume(row)
        }
      },
      failed: error => log.error(`events of bridges are not resumed: ${messageOf(error)}`),
    })
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await Promise.allSettled([...this.#inFlight.values()])
  }

  /** Deletes all events and conversations of an instance. */
  forget(t: Tx, bridgeId: string): void {
    inbox.delete(t, { bridgeId })
    routes.delete(t, { bridgeId })
  }

  #checkOpen(bridgeId: string): void {
    const { draining } = this.kernel.needs.daemon
    if (this.#isClosed || draining || !this.instances.accepts(bridgeId)) {
      const why = this.#isClosed || draining ? 'the daemon accepts no new work' : `bridge ${bridgeId} is not ready`
      throw BridgeErrors.bridge_not_accepting(`${why}; send the event again`)
    }
    const sql = "SELECT count(*) AS n FROM bridges_inbox WHERE bridge_id = ? AND state = 'received'"
    const { n = 0 } = this.kernel.db.get<{ n: number }>(sql, [bridgeId]) ?? {}
    if (n >= MAX_RECEIVED)
      throw BridgeErrors.bridge_not_accepting(`${n} events of bridge ${bridgeId} wait; send this one again later`)
  }

  /** Limits the wait of an adapter: processing continues without it. */
  async #waited(work: Promise<IngestResult>): Promise<IngestResult> {
    const late = new Promise<undefined>(resolve => {
      const timer = this.kernel.clock.timeout(WAIT_MS, () => resolve(undefined), { unref: true })
      void work.catch(() => {}).finally(() => timer.cancel())
    })
    const result = await Promise.race([work, late])
    if (result) return result
    throw BridgeErrors.bridge_not_accepting('the event is in the inbox and waits for its session; send it again')
  }

  #resume(row: InboxRow): void {
    const event = JSON.parse(row.event) as InboundEvent
    if (this.#inFlight.has(nameOf(row.bridgeId, row.key))) return
    this.#process(row, event).catch(error =>
      this.kernel.log.warn(`an event of bridge ${row.bridgeId} waits: ${messageOf(error)}`),
    )
  }

  #process(known: InboxRow | undefined, event: InboundEvent): Promise<IngestResult> {
    const name = nameOf(event.bridge_instance_id, event.idempotency_key)
    const work = this.#take(known, event).finally(() => this.#inFlight.delete(name))
    this.#inFlight.set(name, work)
    work.catch(() => {})
    return work
  }

  async #take(known: InboxRow | undefined, event: InboundEvent): Promise<IngestResult> {
    const row = known ?? (await this.#write(event))
    const instance = this.instances.get(row.bridgeId)
    if (!instance) throw BridgeErrors.bridge_not_found(`bridge ${row.bridgeId} was deleted`)
    try {
      const settled = await this.#judged(row, instance, event)
      if (!('state' in settled)) return settled
      return await this.#settle(row, event, settled)
    } catch (error) {
      return await this.#failed(row, event, error)
    }
  }

  async #write(event: InboundEvent): Promise<InboxRow> {
    const { ids, clock, db } = this.kernel
    const now = clock.now()
    // A platform with a wrong clock must not keep an event for years.
    const at = Math.max(now, Math.min(event.received_at ?? now, now + KEPT_MS))
    const row: InboxRow = {
      ...{ id: ids.id('bev'), bridgeId: event.bridge_instance_id, key: event.idempotency_key, state: 'received' },
      ...{ event: keptOf(event), files: event.attachments?.length ?? 0, attempts: 0 },
      ...{ receivedAt: now, expiresAt: at + KEPT_MS },
    }
    await db.tx(t => {
      inbox.insert(t, row)
      this.instances.heard(t, row.bridgeId)
    })
    this.#alarm.set(SWEEP, this.#nextSweep())
    return row
  }

  /** Why an event is ignored for every sender: in a busy room most are, and no row is written for them. */
  #nothingIn({ id, providerConfig, dmPolicy }: Instance, event: InboundEvent): string | undefined {
    const { family, message_id: messageId } = event
    if (family === 'edit' || family === 'reaction') return family
    if (event.automatic) return 'automatic'
    if (messageId !== undefined && this.deliveries.ledger.isOwn(id, addressOf(event), messageId)) return 'own_message'
    const word = wordOf(event)
    if (word && 'code' in word && this.questions.has(id, word.code)) return undefined
    const judged = judge({ dmPolicy, providerConfig }, this.instances.provider(id), event)
    return !judged.may && judged.reason === 'not_addressed' ? judged.reason : undefined
  }

  async #passed(
    { bridge_instance_id: bridgeId, idempotency_key }: InboundEvent,
    reason: string,
  ): Promise<IngestResult> {
    const now = this.kernel.clock.now()
    if ((this.#heardAt.get(bridgeId) ?? 0) + HEARD_MS <= now) {
      this.#heardAt.set(bridgeId, now)
      await this.kernel.db.tx(t => this.instances.heard(t, bridgeId))
    }
    return { idempotency_key, outcome: 'ignored', reason }
  }

  // Processing an event.

  async #judged(row: InboxRow, instance: Instance, event: InboundEvent): Promise<IngestResult | Settled> {
    const { family, sender } = event
    const word = wordOf(event)
    const sessions = this.kernel.needs.sessions.current
    if (!sessions)
      throw BridgeErrors.bridge_not_accepting('the sessions of this daemon do not run; send the event again')
    if (word && 'code' in word && this.questions.has(instance.id, word.code))
      return this.#answer(sessions, row, instance, event, word)
    const judgement = judge(instance, this.instances.provider(instance.id), event)
    if (!judgement.may) return ignored(judgement.reason)
    const conversationKey = JSON.stringify([instance.id, addressOf(event), sender.id])
    const pace = this.#pairs.came(conversationKey, sender.is_bot === true, this.kernel.clock.now())
    if (pace === 'first')
      return answered('pair_limit', 'Too many messages within a minute: no answers here for one minute.')
    if (pace === 'stopped') return ignored('pair_limit')
    if (word && 'code' in word) return this.#answer(sessions, row, instance, event, word)
    const conversation = conversationOf(instance, event)
    if (typeof conversation === 'string') return ignored(`missing_${conversation}`)
    if (word?.says === 'cancel') return this.#cancel(sessions, conversation)
    if (word?.says === 'new') return this.#renew(sessions, conversation)
    if (family === 'action') return ignored('unknown_action')
    if (row.event !== '' && isTooLong(event))
      return answered(
        'text_too_long',
        `A message is at most ${MAX_TEXT / 1024} KiB; this one is longer and was not read.`,
      )
    if ((event.text ?? '').trim() === '' && row.files === 0) return ignored('no_text')
    const { workspaceId } = instance
    if (workspaceId === undefined)
      return answered('no_workspace', 'This bridge has no workspace, so no agent can answer here.')
    return this.#ordered.run(conversation.key, () =>
      this.#prompt(sessions, row, { ...instance, workspaceId }, conversation, event, conversationKey),
    )
  }

  async #answer(
    sessions: SessionsApi,
    row: InboxRow,
    instance: Instance,
    event: InboundEvent,
    word: Exclude<Word, { says: 'cancel' | 'new' }>,
  ): Promise<Settled> {
    const { text, reason = 'question_answered' } = await this.questions.answer(sessions, instance, event, word, row.id)
    return answered(reason, text)
  }

  async #cancel(sessions: SessionsApi, { key }: Conversation): Promise<Settled> {
    const route = this.conversations.get(key)
    const isRunning = route && sessions.healthOf(route.sessionId)?.active_prompt === true
    if (!route || !isRunning) return answered('nothing_runs', 'Nothing runs here.')
    // The end of the turn is reported through its answer.
    void sessions.interrupt(route.sessionId).catch(error => this.kernel.log.warn(`no cancel: ${messageOf(error)}`))
    return { state: 'answered', reason: 'canceled' }
  }

  async #renew(sessions: SessionsApi, { key }: Conversation): Promise<Settled> {
    const route = this.conversations.get(key)
    await this.conversations.unbind(key)
    if (route && sessions.get(route.sessionId))
      await sessions.stop(route.sessionId, { reason: 'completed', detail: 'a new session was started from the chat' })
    return answered('renewed', 'The next message starts a new session.')
  }

  /** Passes an event to the session of its conversation, in order per conversation. */
  async #prompt(
    sessions: SessionsApi,
    row: InboxRow,
    instance: Workplaced,
    conversation: Conversation,
    event: InboundEvent,
    conversationKey: string,
  ): Promise<IngestResult> {
    // The session that an earlier daemon may have prompted is tried first, since it knows the key.
    let id = row.sessionId
    for (let tries = 0; ; tries++) {
      if (id === undefined || !sessions.get(id)) {
        id = (await this.conversations.session(sessions, instance, conversation, event, row.id)).id
        const sessionId = id
        await this.kernel.db.tx(t => inbox.update(t, { id: row.id }, { sessionId }))
      }
      try {
        const turn = await this.#queue(sessions, id, row, instance, event)
        return await this.#prompted(row, instance, event, { ...turn, sessionId: id }, conversationKey)
      } catch (error) {
        if (tries >= MAX_ATTEMPTS || !GONE.has(faultOf(error).code)) throw error
        const bound = this.conversations.get(conversation.key)
        if (bound?.sessionId === id) await this.conversations.unbind(conversation.key)
        id = undefined
      }
    }
  }

  async #queue(
    sessions: SessionsApi,
    id: string,
    row: InboxRow,
    { platform, displayName }: Instance,
    event: InboundEvent,
  ): Promise<QueuedTurn> {
    const { sender, text = '', attachments = [] } = event
    const { files, notes } = await attached(sessions, id, attachments)
    const lost = row.files > 0 && attachments.length === 0 ? ['[the files of this message were lost in a restart]'] : []
    const name = plain(sender.display_name ?? sender.username ?? sender.id, 100)
    return sessions.queue(id, {
      text: [text, ...notes, ...lost].filter(part => part !== '').join('\n'),
      ...{ source: 'bridge', key: `bridge-${row.id}-${row.attempts}`, cause: row.id },
      onBehalfOf: { id: plain(sender.id, 200), name, via: plain(`${platform} (${displayName})`, 200) },
      ...(files.length > 0 && { attachments: files }),
    })
  }

  async #prompted(
    row: InboxRow,
    instance: Instance,
    event: InboundEvent,
    { turnId, from, sessionId }: QueuedTurn & { readonly sessionId: string },
    conversationKey: string,
  ): Promise<IngestResult> {
    const isReply = instance.deliveryDefaults?.mode === 'reply' || event.group_id !== undefined
    const delivery = await this.kernel.db.tx(t => {
      inbox.update(t, { id: row.id }, { state: 'prompted', sessionId })
      return this.deliveries.ledger.add(t, {
        ...{ bridgeId: row.bridgeId, kind: 'answer' as const, key: `a:${row.id}-${row.attempts}`, source: 'session' },
        ...{ target: addressOf(event), replyTo: isReply ? event.message_id : undefined },
        ...{ sessionId, turnId, from, eventId: row.id, open: true },
      })
    })
    if (delivery) {
      this.#askers.set(delivery.id, conversationKey)
      this.deliveries.answers.follow(delivery)
    }
    return { idempotency_key: row.key, outcome: 'prompted', session_id: sessionId }
  }

  async #settle(row: InboxRow, event: InboundEvent, { state, reason, say }: Settled): Promise<IngestResult> {
    const { bridgeId } = row
    const target = addressOf(event)
    await this.kernel.db.tx(t => {
      inbox.update(t, { id: row.id }, { state, reason, event: '' })
      const message = { bridgeId, kind: 'notice' as const, key: `n:${row.id}`, source: 'bridge', target }
      if (say !== undefined) this.deliveries.send(t, message, say)
    })
    return resultOf({ ...row, state, reason }, state)
  }

  /** Handles a failure: retries if that can help, else reports the reason to the chat. */
  async #failed(row: InboxRow, event: InboundEvent, error: unknown): Promise<IngestResult> {
    const fault = faultOf(error)
    const now = this.kernel.clock.now()
    if (fault.code === 'bridge_not_accepting' || this.#isClosed) {
      this.#alarm.set(row.id, now + RETRY.longestMs)
      throw error
    }
    if (!LATER.has(fault.code)) {
      this.kernel.log.warn(`an event of bridge ${row.bridgeId} was not passed to an agent: ${fault.message}`)
      return this.#settle(row, event, answered(fault.code, `This could not be passed to an agent: ${fault.message}`))
    }
    if (now > row.receivedAt + GIVEN_UP_MS)
      return this.#settle(row, event, answered(fault.code, 'No agent was available. Ask again later.'))
    const tries = Math.floor(Math.log2(1 + (now - row.receivedAt) / RETRY.firstMs)) + 1
    this.#alarm.set(row.id, now + backoff(tries, () => this.kernel.ids.random(), RETRY))
    throw BridgeErrors.bridge_not_accepting(`the event waits: ${messageOf(error)}; send it again`)
  }

  // Handling an answer.

  /** A prompt that no agent received is sent again, so that the person need not repeat it. */
  #ended(t: Tx, { eventId, id }: Delivery, end: TurnEnd): boolean {
    const row = eventId === undefined ? undefined : inbox.get(t, { id: eventId })
    if (row?.state !== 'prompted') return true
    const isUnsent = end.how === 'failed' && end.unsent && row.attempts + 1 < MAX_ATTEMPTS
    if (!isUnsent || this.deliveries.ledger.partsOf(t, id).length > 0) {
      inbox.update(t, { id: row.id }, { event: '' })
      return true
    }
    const again: InboxRow = { ...row, state: 'received', attempts: row.attempts + 1 }
    inbox.update(t, { id: row.id }, { state: again.state, attempts: again.attempts })
    this.kernel.db.onDurable(t, () => this.#resume(again))
    return false
  }

  #over({ id }: Delivery): void {
    const asker = this.#askers.get(id)
    this.#askers.delete(id)
    if (asker !== undefined) this.#pairs.answered(asker, this.kernel.clock.now())
  }

  // Cleaning up the inbox.

  #nextSweep(): number | undefined {
    const sql = "SELECT min(expires_at) AS at FROM bridges_inbox WHERE state <> 'received'"
    return this.kernel.db.get<{ at: number | null }>(sql)?.at ?? undefined
  }

  async #sweep(): Promise<void> {
    const sql = `DELETE FROM bridges_inbox WHERE id IN
      (SELECT id FROM bridges_inbox WHERE expires_at <= ? AND state <> 'received' LIMIT ${SWEEP_BATCH})`
    await this.kernel.db.tx(t => t.run(sql, [this.kernel.clock.now()]))
    this.#alarm.set(SWEEP, this.#nextSweep())
  }
}

/** Stores the files of an event for its session; rejected ones are mentioned to the agent. */
async function attached(sessions: SessionsApi, id: string, attachments: readonly InboundAttachment[]) {
  const files: string[] = []
  const notes: string[] = []
  for (const { name, mime_type: type, data } of attachments) {
    try {
      files.push(await sessions.attach(id, { name, type, data: Buffer.from(data, 'base64') }))
    } catch (error) {
      const fault = faultOf(error)
      if (fault.code === 'internal' || GONE.has(fault.code)) throw error
      notes.push(`[a file was not accepted, ${JSON.stringify(plain(name, 100))}: ${fault.message}]`)
    }
  }
  return { files, notes }
}

const nameOf = (bridgeId: string, key: string): string => `${bridgeId}\u0000${key}`

function resultOf({ key, sessionId, reason }: InboxRow, outcome: IngestResult['outcome']): IngestResult {
  return {
    idempotency_key: key,
    outcome,
    ...(sessionId !== undefined && { session_id: sessionId }),
    ...(reason !== undefined && { reason }),
  }
}
