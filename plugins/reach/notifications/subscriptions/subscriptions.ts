import { backoff } from '../../../../kernel/kit/backoff.js'
import { command } from '../../../../kernel/kit/commands/command-line.js'
import { shown } from '../../../../kernel/kit/text.js'
import { type Actor, messageOf as errorText, iso, type Tx } from '../../../../kernel/plugin.js'
import type { ListSubscriptionsQuery, SubscribeBody, TaskSubscription } from '../../../../schemas/notifications.js'
import { namedActor } from '../../../access/identity/api.js'
import type { StoredEvent } from '../../../platform/events/api.js'
import { TaskErrors } from '../../../work/tasks/api.js'
import { type BridgeAddress, BridgeErrors, type BridgesApi } from '../../bridges/api.js'
import { NotificationErrors } from '../api.js'
import { messageOf, oneLine } from '../dispatch/happening.js'
import type { K } from '../needs.js'
import { destinationOf } from '../presets/targets.js'
import { BridgeNotificationTimeout } from '../settings.js'
import { type SubscriptionRow, subscriptions } from '../tables.js'

/** Subscriptions of one task. */
const MOST = 100
const DEFAULT_LIMIT = 200
/** Milliseconds that an announcement waits for bridges that do not run. */
const ABSENT_MS = 30_000
const RETRY = { firstMs: 1000, longestMs: 5 * 60_000 }
/** Events of a task's status changes, and the final statuses. */
const STATUS_CHANGED = 'task.status_changed'
const CANCELED = 'task.canceled'
const ENDED: Readonly<Record<string, string>> = {
  completed: 'Task completed',
  failed: 'Task failed',
  canceled: 'Task canceled',
}
const STREAM = 'task-end'
const KEY = 'task-end:'

const { subscription_invalid: invalid, subscription_not_found: missing } = NotificationErrors

/** Subscriptions of rooms to the end of a task. */
export class Subscriptions {
  constructor(
    private readonly kernel: K,
    private readonly wake: () => void,
  ) {}

  /** @throws Fault `task_not_found` (404) */
  list(taskId: string, query: ListSubscriptionsQuery): TaskSubscription[] {
    this.#checkTask(taskId)
    const { bridge_instance_id: bridge, scope, workspace_id: workspace, limit = DEFAULT_LIMIT } = query
    return subscriptions
      .all(this.kernel.db, { task_id: taskId }, 'ORDER BY created_at, id')
      .filter(row => bridge === undefined || row.bridge_id === bridge)
      .filter(row => scope === undefined || row.scope === scope)
      .filter(row => workspace === undefined || row.workspace_id === workspace)
      .slice(0, limit)
      .map(row => this.#toWire(row))
  }

  /** @throws Fault `task_not_found`, `subscription_not_found` (404) */
  show(taskId: string, id: string): TaskSubscription {
    this.#checkTask(taskId)
    return this.#toWire(this.#find(taskId, id))
  }

  /**
   * Announces the next end of the task in a room; a repetition with the same id and content has no effect. @throws
   * Fault `task_not_found`, `bridge_not_found` (404), `subscription_invalid` (400), `subscription_exists` (409)
   */
  async add(taskId: string, body: SubscribeBody, actor: Actor): Promise<TaskSubscription> {
    this.#checkTask(taskId)
    const { clock, db, ids, needs } = this.kernel
    const { scope, delivery_mode, peer_id, group_id, thread_id } = body
    const workspaceId = await this.#workspaceOf(body, taskId)
    this.#checkBridge(body, workspaceId)
    const { kind, ref } = namedActor(actor)
    const row = await db.tx(t => {
      const now = clock.now()
      const id = body.subscription_id ?? ids.id('sub')
      const address = { ...(peer_id && { peer_id }), ...(group_id && { group_id }), ...(thread_id && { thread_id }) }
      const wanted: SubscriptionRow = {
        ...{ id, task_id: taskId, bridge_id: body.bridge_instance_id, delivery_mode, scope, ...address },
        ...(workspaceId !== undefined && { workspace_id: workspaceId }),
        ...{ created_by_kind: kind, created_by_ref: ref, created_at: now, updated_at: now },
        ...{ seq: needs.events.last(), failures: 0 },
      }
      const known = subscriptions.get(t, { id })
      if (known && isSame(known, wanted)) return known
      if (known) throw NotificationErrors.subscription_exists(`there is a subscription ${shown(id)} already`)
      if (subscriptions.all(t, { task_id: taskId }).length >= MOST)
        throw invalid(`a task has at most ${MOST} subscriptions`)
      subscriptions.insert(t, wanted)
      return wanted
    })
    return this.#toWire(row)
  }

  /** @throws Fault `task_not_found`, `subscription_not_found` (404) */
  async remove(taskId: string, id: string): Promise<void> {
    this.#checkTask(taskId)
    await this.kernel.db.tx(t => {
      this.#find(taskId, id)
      subscriptions.delete(t, { id })
    })
  }

  /** Handles a task's status change in its open transaction, and stores the due announcements. */
  note(t: Tx, { name, seq, id, payload }: StoredEvent): void {
    if (name !== STATUS_CHANGED && name !== CANCELED) return
    const { task_id: taskId, to } = payload as { readonly task_id: string; readonly to?: unknown }
    const status = name === CANCELED ? 'canceled' : `${to}`
    const said = Object.hasOwn(ENDED, status) ? ENDED[status] : undefined
    if (said === undefined) return
    const own = this.kernel.db.within(t)
    const rows = subscriptions.all(own, { task_id: taskId })
    if (rows.length === 0) return
    const title = this.kernel.redact.text(oneLine(this.kernel.needs.tasks.current?.titleOf(taskId) ?? '', 120))
    const what = title === '' ? taskId : `${title} (${taskId})`
    const due = {
      seq,
      event: id,
      text: messageOf({ title: `${said}: ${what}`, detail: undefined, command: command('task get', taskId) }),
    }
    for (const row of rows) subscriptions.update(own, { id: row.id }, { due, retry_at: undefined, failures: 0 })
    this.kernel.db.onDurable(t, this.wake)
  }

  /** Sends due announcements. Resolves with the time of the next call without a wake. */
  async send(): Promise<number | undefined> {
    const { clock, db, ids, needs } = this.kernel
    const { current: bridges } = needs.bridges
    const rows = db
      .all<{ id: string }>('SELECT id FROM notifications_subscription WHERE due IS NOT NULL ORDER BY id LIMIT 1000')
      .flatMap(({ id }) => subscriptions.get(db, { id }) ?? [])
    if (rows.length === 0) return undefined
    if (!bridges) return clock.now() + ABSENT_MS
    const waits: number[] = []
    for (const { id, retry_at: retryAt, failures } of rows) {
      if (retryAt !== undefined && retryAt > clock.now()) {
        waits.push(retryAt)
        continue
      }
      try {
        await db.tx(t => this.#announce(t, id, bridges))
      } catch (error) {
        const until = clock.now() + backoff(failures + 1, () => ids.random(), RETRY)
        const last_error = this.kernel.redact.text(errorText(error), 500)
        await db.tx(t => subscriptions.update(t, { id }, { failures: failures + 1, retry_at: until, last_error }))
        waits.push(until)
      }
    }
    return waits.length === 0 ? undefined : Math.min(...waits)
  }

  #announce(t: Tx, id: string, bridges: BridgesApi): void {
    const row = subscriptions.get(t, { id })
    if (!row?.due) return
    const { seq, event, text } = row.due
    const bridge = bridges.get(row.bridge_id)
    const creator = this.kernel.needs.tasks.current?.creatorSession(row.task_id)
    const address = addressOf(row) ?? bridge?.defaultTarget
    const destination = destinationOf(row, [creator], bridges) ?? (address && { target: address })
    const key = `${KEY}${id}:${event}`
    const done = { seq, due: undefined, retry_at: undefined, failures: 0, cursor_at: this.kernel.clock.now() }
    const source = `task:${row.task_id}`
    const outcome =
      bridge && destination ? bridges.post(t, { bridgeId: bridge.id, key, text, source, ...destination }) : 'missing'
    const error =
      outcome === 'missing'
        ? bridge
          ? `the bridge ${row.bridge_id} no longer has a default target`
          : `the bridge ${row.bridge_id} no longer exists`
        : outcome === 'suppressed'
          ? `the bridge ${row.bridge_id} sends no notifications`
          : undefined
    const sent = error === undefined ? { last_delivery_id: key, last_delivered_at: undefined } : {}
    subscriptions.update(t, { id }, { ...done, last_error: error, ...sent })
  }

  /** Handles the durable end of a message. */
  async ended(key: string, state: string, reason: string | undefined): Promise<void> {
    if (!key.startsWith(KEY)) return
    const row = subscriptions.get(this.kernel.db, { last_delivery_id: key })
    if (!row) return
    const now = this.kernel.clock.now()
    const change =
      state === 'delivered' ? { last_delivered_at: now, last_error: undefined } : { last_error: reason ?? state }
    await this.kernel.db.tx(t => subscriptions.update(t, { id: row.id }, { ...change, cursor_at: now }))
  }

  #checkTask(id: string): void {
    if (this.kernel.needs.tasks.current?.titleOf(id) === undefined)
      throw TaskErrors.task_not_found(`there is no task ${shown(id)}`)
  }

  #find(taskId: string, id: string): SubscriptionRow {
    const row = subscriptions.get(this.kernel.db, { id })
    if (row?.task_id === taskId) return row
    throw missing(`the task ${taskId} has no subscription ${shown(id)}`, {
      next: command('task notification list', taskId),
    })
  }

  async #workspaceOf({ scope, workspace_id: reference }: SubscribeBody, taskId: string): Promise<string | undefined> {
    const { tasks, workspaces } = this.kernel.needs
    if (scope === 'global') {
      if (reference !== undefined) throw invalid('workspace_id: not allowed with the scope global')
      return undefined
    }
    const own = tasks.current?.workspaceOf(taskId)
    const targetId = reference === undefined ? own : (await workspaces.current?.find(reference))?.id
    if (targetId === undefined)
      throw invalid('workspace_id: required with the scope workspace for a task of no workspace')
    if (own !== undefined && targetId !== own)
      throw invalid(`workspace_id: the task ${taskId} is of another workspace, ${own}`)
    return targetId
  }

  #checkBridge(body: SubscribeBody, workspaceId: string | undefined): void {
    const { bridge_instance_id: id, thread_id: thread } = body
    const bridge = this.kernel.needs.bridges.current?.get(id)
    if (!bridge) throw BridgeErrors.bridge_not_found(`there is no bridge ${shown(id)}`)
    if (bridge.workspaceId !== undefined && bridge.workspaceId !== workspaceId)
      throw invalid(
        `the bridge ${id} is of the workspace ${bridge.workspaceId}; give scope workspace and that workspace_id`,
      )
    if (thread !== undefined && !addressOf(body)) throw invalid('thread_id: needs peer_id or group_id')
    if (!addressOf(body) && !bridge.defaultTarget)
      throw invalid(`the bridge ${id} has no default target: give peer_id or group_id`)
  }

  #toWire(row: SubscriptionRow): TaskSubscription {
    const { id, task_id, bridge_id, last_delivery_id: delivery } = row
    return {
      subscription_id: id,
      task_id,
      bridge_instance_id: bridge_id,
      delivery_mode: row.delivery_mode,
      scope: row.scope,
      ...(row.workspace_id !== undefined && { workspace_id: row.workspace_id }),
      ...(row.peer_id !== undefined && { peer_id: row.peer_id }),
      ...(row.group_id !== undefined && { group_id: row.group_id }),
      ...(row.thread_id !== undefined && { thread_id: row.thread_id }),
      created_by: { kind: row.created_by_kind, ref: row.created_by_ref },
      created_at: iso(row.created_at),
      updated_at: iso(row.updated_at),
      cursor: {
        consumer_id: `subscription:${id}`,
        stream_name: STREAM,
        subject_id: task_id,
        last_sequence: row.seq,
        last_delivered_at: row.last_delivered_at === undefined ? null : iso(row.last_delivered_at),
        ...(delivery !== undefined && { last_delivery_id: delivery }),
        ...this.#errorOf(row),
        updated_at: row.cursor_at === undefined ? null : iso(row.cursor_at),
      },
    }
  }

  /** The last error; a message in progress for too long counts as one. */
  #errorOf({
    last_error: error,
    last_delivery_id: delivery,
    last_delivered_at: at,
    cursor_at: since = 0,
  }: SubscriptionRow) {
    if (error !== undefined) return { last_error: error }
    if (delivery === undefined || at !== undefined) return {}
    const patience = this.kernel.config.get(BridgeNotificationTimeout)
    if (patience === 0 || this.kernel.clock.now() - since < patience) return {}
    const standing = this.kernel.needs.bridges.current?.standing(delivery)
    if (standing?.state === 'delivered') return {}
    return {
      last_error: `not delivered within ${patience / 1000} s: ${standing?.reason ?? standing?.state ?? 'unknown'}`,
    }
  }
}

function addressOf({
  peer_id,
  group_id,
  thread_id,
}: { readonly [M in keyof BridgeAddress]?: string | undefined }): BridgeAddress | undefined {
  if (peer_id === undefined && group_id === undefined) return undefined
  return {
    ...(peer_id !== undefined && { peer_id }),
    ...(group_id !== undefined && { group_id }),
    ...(thread_id !== undefined && { thread_id }),
  }
}

const isSame = (a: SubscriptionRow, b: SubscriptionRow): boolean =>
  (
    ['task_id', 'bridge_id', 'delivery_mode', 'scope', 'workspace_id', 'peer_id', 'group_id', 'thread_id'] as const
  ).every(member => a[member] === b[member])
