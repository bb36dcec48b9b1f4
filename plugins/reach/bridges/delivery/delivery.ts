import { Alarm } from '../../../../kernel/kit/alarm.js'
import { command } from '../../../../kernel/kit/commands/command-line.js'
import { cut, shown, visible } from '../../../../kernel/kit/text.js'
import { type Fault, messageOf, type Tx } from '../../../../kernel/plugin.js'
import { finding } from '../../../desk/daemon/api.js'
import {
  type BridgeAddress,
  BridgeErrors,
  type DeliveryReport,
  type DeliveryReportResult,
  type DeliveryStanding,
  type DeliveryState,
  type PostedMessage,
} from '../api.js'
import type { Instances } from '../instances/instances.js'
import type { K } from '../needs.js'
import { Answers } from './answers.js'
import { Lanes } from './lanes.js'
import { Ledger, type NewDelivery, standingOf, TTL_MS } from './ledger.js'
import { quiet } from './mentions.js'
import { textsOf } from './split.js'
import { type Delivery, deliveries, type Part } from './table.js'

/** Maximum number of messages per text. */
const MAX_PARTS = 20
/** Rules for texts while the adapter does not run. */
const RULES = { textLimit: 2000, textUnit: 'code_points', fences: false } as const
/** Characters of a platform's reason for a late failure. */
const MAX_REASON = 400
/** Messages whose commands are named; the list shows the others. */
const NAMED = 3
const SWEEP = 'sweep'

/** A message with its parts. */
export interface Listed {
  readonly delivery: Delivery
  readonly parts: readonly Part[]
  readonly standing: DeliveryStanding
}

/** Outgoing messages: everything in the ledger is delivered or listed as failed. */
export class Deliveries {
  readonly ledger: Ledger
  readonly answers: Answers
  readonly lanes: Lanes
  readonly #sweeps: Alarm

  /** @param ended called when a posted message has ended, durably */
  constructor(
    private readonly kernel: K,
    private readonly instances: Instances,
    ended: (key: string, standing: DeliveryStanding) => void,
  ) {
    this.ledger = new Ledger(kernel, instances, (t, { key, kind }, standing) => {
      if (kind === 'post' && key !== undefined) kernel.db.onDurable(t, () => ended(key.slice(POST.length), standing))
      kernel.db.onDurable(t, () => this.#sweeps.set(SWEEP, kernel.clock.now() + TTL_MS))
    })
    this.answers = new Answers(kernel, instances, this.ledger)
    this.lanes = new Lanes(kernel, instances, this.ledger, (id, part) => this.answers.textOf(id, part))
    this.answers.lanes = this.lanes
    this.#sweeps = new Alarm(kernel.clock, { retryMs: 60_000 })
  }

  /** Continues the work of an earlier daemon and sends messages until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { ledger, kernel } = this
    const attempted = ledger.attempted()
    if (attempted.length > 0) {
      await kernel.db.tx(t => {
        // An edit can be repeated safely; for a new message the platform has to be asked whether it arrived.
        for (const part of attempted)
          ledger.move(t, part, part.remoteId === undefined ? 'unknown_after_send' : 'queued', {})
      })
    }
    const open = ledger.open()
    await this.#forgetQuestions()
    for (const delivery of open) this.answers.follow(delivery, true)
    for (const lane of ledger.lanes()) this.lanes.wake(lane)
    this.#sweeps.set(SWEEP, await ledger.sweep())
    const sweep = async () => this.#sweeps.set(SWEEP, await ledger.sweep())
    const failed = (error: unknown) => kernel.log.error(`old messages are not deleted: ${messageOf(error)}`)
    await Promise.all([this.lanes.run(signal), this.#sweeps.run(signal, { fire: sweep, failed })])
  }

  async close(signal: AbortSignal): Promise<void> {
    await this.answers.close()
    await this.lanes.close(signal)
  }

  /** Called when the state of an instance or its adapter changed. */
  changed(bridgeId: string): void {
    for (const lane of this.ledger.lanes()) if (lane.startsWith(`${bridgeId} `)) this.lanes.wake(lane)
  }

  /** {@link BridgesApi.post} */
  post(outer: Tx, { bridgeId, key, target, text, source, replyTo, expiresAt }: PostedMessage) {
    const instance = this.instances.get(bridgeId)
    if (!instance) return 'missing'
    const t = this.kernel.db.within(outer)
    if (deliveries.get(t, { key: `${POST}${key}` })) return 'known'
    if (instance.suppress) return 'suppressed'
    const ttl = expiresAt === undefined ? TTL_MS : Math.max(0, expiresAt - this.kernel.clock.now())
    this.send(t, { bridgeId, kind: 'post', key: `${POST}${key}`, source, target, replyTo, ttl }, text)
    return 'queued'
  }

  standing(key: string): DeliveryStanding | undefined {
    return this.ledger.standing(`${POST}${key}`)
  }

  /** {@link BridgesApi.failedDeliveries} */
  failed(): ReadonlySet<string> {
    const rows = this.kernel.db.all<{ id: string }>("SELECT delivery_id AS id FROM bridges_part WHERE state = 'failed'")
    return new Set(rows.map(({ id }) => id))
  }

  /** Writes a message, which is sent once that is durable; undefined if its key was used before. */
  send(t: Tx, message: NewDelivery, text: string, event: 'final' | 'error' = 'final'): Delivery | undefined {
    const delivery = this.ledger.add(t, message)
    if (!delivery) return undefined
    const rules = this.instances.provider(message.bridgeId)?.capabilities ?? RULES
    const texts = textsOf(quiet(text), rules)
    const shown = texts.length > MAX_PARTS ? [...texts.slice(0, MAX_PARTS - 1), '… the rest is left out'] : texts
    for (const [n, one] of (shown.length > 0 ? shown : ['(no text)']).entries())
      this.ledger.append(t, delivery, n, one, event)
    this.kernel.db.onDurable(t, () => void this.lanes.entered(delivery.lane, delivery.bridgeId))
    return delivery
  }

  /** Sends a notice to a chat about an event there, once per key. */
  async notice(bridgeId: string, key: string, target: BridgeAddress, text: string, replyTo?: string): Promise<void> {
    const message = { bridgeId, kind: 'notice' as const, key: `n:${key}`, source: 'bridge', target, replyTo }
    await this.kernel.db.tx(t => this.send(t, message, text))
  }

  /** {@link BridgeHost.reportDelivery} */
  async reported(extension: string, report: DeliveryReport): Promise<DeliveryReportResult> {
    const { bridge_instance_id: id, remote_message_id: remoteId, reason } = report
    if (this.instances.get(id)?.extension !== extension)
      throw BridgeErrors.bridge_not_found(`the extension ${extension} has no bridge ${shown(id, 100)}`)
    const plain = visible(cut(this.instances.plain(reason).replace(/\s+/g, ' '), MAX_REASON))
    const outcome = await this.kernel.db.tx(t => this.ledger.rejected(t, id, remoteId, plain))
    if (outcome !== 'busy') return { outcome }
    throw BridgeErrors.bridge_not_accepting('a message is being sent; report it again', { retryAfter: 1 })
  }

  /** Suppresses the unsent parts of a message that became irrelevant. */
  async withdraw(key: string, reason: string): Promise<void> {
    const delivery = deliveries.get(this.kernel.db, { key })
    if (!delivery || delivery.endedAt !== undefined) return
    await this.kernel.db.tx(t => this.ledger.suppress(t, delivery.id, reason, ['prepared', 'queued']))
    this.lanes.wake(delivery.lane)
  }

  /** Messages of an instance: failed ones first, then those in progress, then the newest. */
  list(bridgeId: string, state: DeliveryState | undefined, limit: number): Listed[] {
    const rank = "CASE p.state WHEN 'failed' THEN 0 WHEN 'delivered' THEN 2 WHEN 'suppressed' THEN 2 ELSE 1 END"
    const where = state === undefined ? '' : 'AND p.state = ?'
    const rows = this.kernel.db.all<{ id: string }>(
      `SELECT d.id AS id FROM bridges_delivery d LEFT JOIN bridges_part p ON p.delivery_id = d.id
       WHERE d.bridge_id = ? ${where} GROUP BY d.id ORDER BY min(${rank}), d.created_at DESC, d.id LIMIT +?`,
      [bridgeId, ...(state === undefined ? [] : [state]), limit],
    )
    return rows.map(({ id }) => this.#listed(id))
  }

  /** Sends the failed parts of a message again. */
  async resend(bridgeId: string, id: string): Promise<Listed> {
    const delivery = this.#found(bridgeId, id)
    await this.kernel.db.tx(t => {
      if (this.ledger.resend(t, delivery) === 0)
        throw BridgeErrors.bridge_delivery_not_failed(`no message of ${id} failed`)
    })
    this.lanes.wake(delivery.lane)
    return this.#listed(id)
  }

  /** Discards the parts of a message that failed, are unsent or have an unknown result. */
  async discard(bridgeId: string, id: string): Promise<Listed> {
    const { lane } = this.#found(bridgeId, id)
    const states: readonly DeliveryState[] = ['failed', 'prepared', 'queued', 'unknown_after_send']
    await this.kernel.db.tx(t => {
      if (this.ledger.suppress(t, id, 'discarded', states) === 0)
        throw BridgeErrors.bridge_delivery_not_failed(`no message of ${id} is waiting`)
    })
    this.lanes.wake(lane)
    return this.#listed(id)
  }

  /** Why an instance cannot be deleted: messages are in progress. */
  guard(t: Tx, bridgeId: string): Fault | undefined {
    const busy = this.busy(t, bridgeId)
    if (busy === undefined) return undefined
    const next = command('bridge deliveries', bridgeId)
    return BridgeErrors.bridge_busy(`bridge ${bridgeId} cannot be deleted: it has ${busy}`, { next })
  }

  /** Messages of an instance in progress, with the commands that end them; undefined if there are none. */
  busy(t: Tx, bridgeId: string): string | undefined {
    const { n, first } = this.ledger.underWay(this.kernel.db.within(t), bridgeId, NAMED)
    if (n === 0) return undefined
    const ids = first.map(({ id }) => id).join(', ')
    const rest = n > first.length ? ` and ${n - first.length} more` : ''
    const ends = first.map(({ id, open, sessionId }) =>
      open && sessionId !== undefined ? command('session cancel', sessionId) : command('bridge discard', bridgeId, id),
    )
    const how = [command('bridge disable', bridgeId), ...new Set(ends)].join('; ')
    return `${n === 1 ? 'a message' : `${n} messages`} on the way, ${ids}${rest}; wait, or end them: ${how}`
  }

  /** The doctor's items: messages that need a decision of a person. */
  findings(): ReturnType<typeof finding>[] {
    return this.ledger.failedByBridge().map(({ bridge_id: id, n }) =>
      finding({
        ...{
          id: `bridges.deliveries.${id}`,
          category: 'bridges',
          code: 'bridge_deliveries_failed',
          severity: 'warning',
        },
        title: `bridge ${id}: ${n} ${n === 1 ? 'message was' : 'messages were'} not delivered`,
        message: 'The platform rejected them, or it is unknown whether they arrived. Resend or discard each of them.',
        suggested_command: command('bridge deliveries', id),
      }),
    )
  }

  #found(bridgeId: string, id: string): Delivery {
    const delivery = this.ledger.get(this.kernel.db, id)
    if (delivery?.bridgeId !== bridgeId)
      throw BridgeErrors.bridge_delivery_not_found(`no delivery ${id} of ${bridgeId}`)
    return delivery
  }

  #listed(id: string): Listed {
    const delivery = this.ledger.get(this.kernel.db, id) as Delivery
    const parts = this.ledger.partsOf(this.kernel.db, id)
    return { delivery, parts, standing: parts.length === 0 ? { state: 'prepared' } : standingOf(parts) }
  }

  /** Suppresses questions of turns that ended with an earlier daemon: nothing waits for them. */
  async #forgetQuestions(): Promise<void> {
    const questions = deliveries.all(this.kernel.db, { kind: 'question', endedAt: null })
    if (questions.length === 0) return
    await this.kernel.db.tx(t => {
      for (const { id } of questions) this.ledger.suppress(t, id, 'over', ['prepared', 'queued'])
    })
  }
}

/** Prefix for keys of messages from other plugins. */
const POST = 'p:'
