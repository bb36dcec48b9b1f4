import { createHash } from 'node:crypto'
import { cut } from '../../../../kernel/kit/text.js'
import { iso } from '../../../../kernel/plugin.js'
import type {
  AcknowledgeBody,
  AttentionItem,
  AttentionQuery,
  Attention as AttentionReply,
} from '../../../../schemas/notifications.js'
import { InboxSources } from '../../../work/sessions/api.js'
import { type AttentionEntry, AttentionSources, NotificationErrors } from '../api.js'
import { oneLine } from '../dispatch/happening.js'
import type { K } from '../needs.js'
import type { Notices } from '../notices/notices.js'
import { DEFAULT_PROFILE } from '../presets/presets.js'
import { receipts } from '../tables.js'
import { finishedEntry, inboxEntries } from './inbox.js'
import type { Troubles } from './troubles.js'

/** Rows of a reply, and entries per contributed source. */
const ROWS = 100
const MOST_OF_SOURCE = 10_000
const TITLE = 200
const DETAIL = 1000
/** Milliseconds for which receipts of removed items are kept. */
const RECEIPT_MS = 30 * 24 * 3_600_000

/** A requested list. */
interface View {
  readonly surface: 'bell' | 'home'
  /** Profiles whose receipts count; an item is listed while any of them lacks a receipt. */
  readonly profiles: readonly string[]
  /** Undefined: items of all workspaces; null: items without a workspace. */
  readonly workspaceId: string | null | undefined
  readonly isLabelled: boolean
}

/** The attention list with its acknowledgements. */
export class Attention {
  constructor(
    private readonly kernel: K,
    private readonly troubles: Troubles,
    private readonly notices: Notices,
  ) {}

  /** All entries, newest first, unique by id. */
  entries(): AttentionEntry[] {
    const { current: sessions } = this.kernel.needs.sessions
    const waiting = sessions ? inboxEntries(sessions.inbox(MOST_OF_SOURCE)) : this.#inboxOfOthers()
    const found = new Map<string, AttentionEntry>()
    const asks = new Set(waiting.flatMap(({ sessionId }) => sessionId ?? []))
    const add = (entry: AttentionEntry) => found.set(entry.id, entry)
    for (const entry of this.#contributed()) add(entry)
    for (const entry of this.notices.entries()) add(entry)
    for (const entry of this.troubles.entries()) add(entry)
    // A session with a question is listed only for that question, and so is a task that waits for a person.
    for (const finished of sessions?.finished() ?? []) if (!asks.has(finished.session.id)) add(finishedEntry(finished))
    for (const entry of waiting) {
      add(entry)
      if (entry.taskId !== undefined && entry.kind === 'blocked') found.delete(`task:${entry.taskId}`)
    }
    return [...found.values()].sort((a, b) => b.occurredAt - a.occurredAt || (a.id < b.id ? -1 : 1))
  }

  /** Entries without an acknowledgement of the default profile on any surface, of a workspace or all; newest first. */
  unseen(workspaceId?: string): AttentionEntry[] {
    return this.#withoutReceipt(this.entries()).filter(
      ({ workspaceId: of }) => workspaceId === undefined || of === workspaceId,
    )
  }

  /** The {@link unseen} entries caused by events. */
  unseenTroubles(): AttentionEntry[] {
    return this.#withoutReceipt(this.troubles.entries())
  }

  #withoutReceipt(entries: readonly AttentionEntry[]): AttentionEntry[] {
    const generations = new Map<string, Set<number>>()
    for (const { item, generation } of receipts.all(this.kernel.db, { profile: DEFAULT_PROFILE }))
      generations.set(item, (generations.get(item) ?? new Set()).add(generation))
    return entries.filter(({ id, generation }) => !generations.get(id)?.has(generation))
  }

  async list(query: AttentionQuery): Promise<AttentionReply> {
    const view = await this.#viewOf(query)
    const listed = this.#listed(view)
    const finished = listed.filter(({ entry }) => entry.isFinished).length
    return {
      finished,
      needs_you: listed.length - finished,
      total: listed.length,
      snapshot: snapshotOf(view, listed),
      ...(listed.length > ROWS && { notes: [`the newest ${ROWS} of ${listed.length}`] }),
      items: listed.slice(0, ROWS).map(({ entry, open }, at) => this.#toWire(entry, at, view.isLabelled ? open : [])),
    }
  }

  /** @throws Fault `attention_changed`, `attention_item_unknown` (409) */
  async acknowledge(query: AttentionQuery, { snapshot, id }: AcknowledgeBody): Promise<void> {
    const view = await this.#viewOf(query)
    await this.kernel.db.tx(t => {
      const listed = this.#listed(view)
      if (snapshotOf(view, listed) !== snapshot) throw NotificationErrors.attention_changed()
      const meant = id === undefined ? listed : listed.filter(({ entry }) => entry.id === id)
      if (id !== undefined && meant.length === 0)
        throw NotificationErrors.attention_item_unknown(`the list has no item ${JSON.stringify(cut(id, 200))}`)
      const at = this.kernel.clock.now()
      for (const { entry, open } of meant)
        for (const profile of open)
          receipts.replace(t, { profile, surface: view.surface, item: entry.id, generation: entry.generation, at })
      this.#forgetOld(t, at)
    })
  }

  #forgetOld(t: Parameters<typeof receipts.insert>[0], now: number): void {
    const there = new Set(this.entries().map(({ id }) => id))
    const old = t.all<{ item: string }>(
      'SELECT DISTINCT item FROM notifications_receipt WHERE at < ? ORDER BY at LIMIT 1000',
      [now - RECEIPT_MS],
    )
    for (const { item } of old) if (!there.has(item)) receipts.delete(t, { item })
  }

  async #viewOf(query: AttentionQuery): Promise<View> {
    const { surface, profile, receipt_profile: receiptProfile, all_profiles: all = false, workspace } = query
    if (all && profile !== undefined) throw NotificationErrors.attention_query_invalid()
    const own = receiptProfile ?? profile ?? DEFAULT_PROFILE
    const { current: workspaces } = this.kernel.needs.workspaces
    const found = workspace ? await workspaces?.find(workspace) : undefined
    const workspaceId = workspace === undefined ? undefined : workspace === '' ? null : (found?.id ?? null)
    const known = all && receiptProfile === undefined ? this.#profiles() : []
    return { surface, profiles: [...new Set([own, ...known])].sort(), workspaceId, isLabelled: all }
  }

  /** Profiles with an acknowledgement or an enabled preset. */
  #profiles(): string[] {
    return this.kernel.db
      .all<{ profile: string }>(
        'SELECT profile FROM notifications_receipt UNION SELECT profile FROM notifications_enablement LIMIT 1000',
      )
      .map(({ profile }) => profile)
  }

  /** Entries of a list with the profiles that have not acknowledged them. */
  #listed({ surface, profiles, workspaceId }: View) {
    const generations = new Map<string, number>()
    for (const profile of profiles)
      for (const { item, generation } of receipts.all(this.kernel.db, { profile, surface }))
        generations.set(`${profile}\n${item}`, generation)
    return this.entries().flatMap(entry => {
      if (workspaceId !== undefined && (entry.workspaceId ?? null) !== workspaceId) return []
      const open = profiles.filter(profile => generations.get(`${profile}\n${entry.id}`) !== entry.generation)
      return open.length > 0 ? [{ entry, open }] : []
    })
  }

  #contributed(): AttentionEntry[] {
    return this.kernel.collect(AttentionSources).flatMap(({ owner, entry: { name, read } }) => {
      try {
        return read()
          .slice(0, MOST_OF_SOURCE)
          .map(entry => ({ ...entry, id: `${name}:${entry.id}` }))
      } catch (error) {
        // A failing source must not hide the entries of others.
        this.kernel.log.warn('a source of attention failed', { owner, source: name, error: String(error) })
        return []
      }
    })
  }

  /** Waiting items while the sessions plugin does not run. */
  #inboxOfOthers(): AttentionEntry[] {
    return inboxEntries(this.kernel.collect(InboxSources).flatMap(({ entry }) => [...entry.read(MOST_OF_SOURCE)]))
  }

  #toWire(entry: AttentionEntry, index: number, labels: readonly string[]): AttentionItem {
    const { redact, needs } = this.kernel
    const title = oneLine(entry.title, TITLE)
    const detail = oneLine(entry.detail ?? '', DETAIL)
    const shown = { title: redact.text(title), detail: redact.text(detail) }
    const { workspaceId = '' } = entry
    return {
      id: entry.id,
      kind: entry.kind,
      ...(entry.requestKind && { request_kind: entry.requestKind }),
      source_id: entry.sourceId,
      workspace_id: workspaceId,
      workspace_label: needs.workspaces.current?.get(workspaceId)?.name ?? '',
      ...shown,
      ...(labels.length > 0 && { badge: labels.join(', ') }),
      occurred_at: iso(entry.occurredAt),
      finished: entry.isFinished ?? false,
      item_index: index,
      generation: entry.generation,
      redacted: shown.title !== title || shown.detail !== detail,
      ...(entry.agentName !== undefined && { agent_name: entry.agentName }),
      ...(entry.runId !== undefined && { run_id: entry.runId }),
      ...(entry.sessionId !== undefined && { session_id: entry.sessionId }),
      ...(entry.taskId !== undefined && { task_id: entry.taskId }),
      ...(entry.terminalId !== undefined && { terminal_id: entry.terminalId }),
      ...(entry.command !== undefined && { command: entry.command }),
    }
  }
}

/** Identifies a list and its content, including entries beyond the rows of a reply. */
function snapshotOf({ surface, profiles, workspaceId }: View, listed: readonly { readonly entry: AttentionEntry }[]) {
  const hash = createHash('sha256').update(JSON.stringify([surface, profiles, workspaceId ?? typeof workspaceId]))
  for (const { entry } of listed) hash.update(`\n${entry.id} ${entry.generation}`)
  return hash.digest('hex').slice(0, 32)
}
