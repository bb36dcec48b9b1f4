import * as v from 'valibot'
import { command } from '../../../../kernel/kit/commands/command-line.js'
import { Paging } from '../../../../kernel/kit/page.js'
import { matching } from '../../../../kernel/kit/table.js'
import { iso } from '../../../../kernel/plugin.js'
import type {
  ConversationMessage,
  Direct,
  Envelope,
  ListContainersQuery,
  ListMessagesQuery,
  Surface,
  Thread,
} from '../../../../schemas/network/messages.js'
import { NetworkErrors } from '../api.js'
import type { K } from '../needs.js'
import { type ContainerRow, containers, type MessageRow, messages } from '../tables.js'
import type { Usage } from '../wakes/usage.js'
import { notWokenOf } from './not-woken.js'

const LIMIT = 50
const INBOX = 100
const paging = new Paging({ place: v.tuple([v.number(), v.string()]) })

/** The fault `conversation_not_found`; it is the same for a direct room of other sessions, which an agent may not see. */
export const noConversation = (channel: string, id: string, surface: Surface): Error =>
  surface === 'direct'
    ? NetworkErrors.conversation_not_found(`channel ${channel} has no direct room ${JSON.stringify(id)}`, {
        next: command('network directs list', channel),
      })
    : NetworkErrors.conversation_not_found(`channel ${channel} has no thread ${JSON.stringify(id)}`)

/** Reads conversations and messages. */
export class Reading {
  constructor(
    private readonly kernel: K,
    private readonly usage: Usage,
  ) {}

  /** @throws Fault `conversation_not_found` */
  container(workspaceId: string, channel: string, id: string, surface: Surface): ContainerRow {
    const row = containers.get(this.kernel.db, { workspaceId, channel, id })
    if (row?.surface === surface) return row
    throw noConversation(channel, id, surface)
  }

  /** A page of the threads or direct rooms of a channel. */
  containers(workspaceId: string, channel: string, surface: Surface, query: ListContainersQuery) {
    const { session_id: sessionId, query: text, has_work: hasWork, sort = 'recent', after, limit = LIMIT } = query
    const of = { query: { workspaceId, channel, surface, sessionId, text, hasWork, sort } }
    const all = matching(
      ['workspace_id = ? AND channel = ? AND surface = ?', workspaceId, channel, surface],
      [
        `EXISTS (SELECT 1 FROM network_participant p WHERE p.workspace_id = network_container.workspace_id
           AND p.channel = network_container.channel AND p.container_id = network_container.id AND p.session_id = ?)`,
        sessionId,
      ],
      ['(instr(lower(title), lower(?)) > 0 OR instr(lower(preview), lower(?)) > 0)', text, text],
      hasWork === undefined ? ['true'] : [`${hasWork ? '' : 'NOT '}EXISTS (${OPEN_WORK})`],
    )
    const total = this.kernel.db.row(`SELECT count(*) FROM network_container WHERE ${all.sql}`, all.params)
    const position = paging.after(of, after)
    const column = sort === 'recent' ? 'last_at' : 'opened_at'
    const [direction, sign] = sort === 'recent' ? ['DESC', '<'] : ['ASC', '>']
    const place = [`(${column}, id) ${sign} (?, ?)`, ...(position ?? [undefined])] as const
    const { sql, params } = matching([all.sql, ...all.params], place)
    const tail = `WHERE ${sql} ORDER BY ${column} ${direction}, id ${direction} LIMIT +?`
    const rows = containers.query(this.kernel.db, tail, [...params, limit + 1])
    const cut = paging.cut(of, rows, limit, row => [sort === 'recent' ? row.lastAt : row.openedAt, row.id])
    const { rows: page, ...more } = cut
    return { rows: page, page: { ...more, limit, total: Number(total?.[0]) } }
  }

  /** Messages of a conversation, ascending. @throws Fault `network_message_not_found` for `before` and `after` */
  messages({ workspaceId, channel, id }: ContainerRow, query: ListMessagesQuery) {
    const { before, after, kind, work_id: workId, limit = LIMIT } = query
    const { sql, params } = matching(
      ['workspace_id = ? AND channel = ? AND container_id = ?', workspaceId, channel, id],
      ['kind = ?', kind],
      ['work_id = ?', workId],
      ['seq > ?', this.#seqOf(workspaceId, after)],
      ['seq < ?', this.#seqOf(workspaceId, before)],
    )
    // Without `after` the newest messages are returned.
    const isBackwards = after === undefined
    const order = `ORDER BY seq ${isBackwards ? 'DESC' : 'ASC'} LIMIT +?`
    const rows = messages.query(this.kernel.db, `WHERE ${sql} ${order}`, [...params, limit + 1])
    const hasMore = rows.length > limit
    const page = rows.slice(0, limit)
    const last = page.at(-1)
    if (isBackwards) page.reverse()
    return {
      messages: page.map(row => this.wire(row)),
      page: { has_more: hasMore, limit, ...(hasMore && last && { next_cursor: last.id }) },
    }
  }

  /** Waiting messages of a session, oldest first. */
  inbox(sessionId: string, limit = INBOX): MessageRow[] {
    return messages.query(
      this.kernel.db,
      `WHERE seq IN (SELECT seq FROM network_delivery WHERE session_id = ? AND delivered_at IS NULL ORDER BY seq LIMIT +?)
       ORDER BY seq`,
      [sessionId, limit],
    )
  }

  openWork({ workspaceId, channel, id }: ContainerRow): number {
    const sql = `SELECT count(*) AS n FROM network_work WHERE workspace_id = ? AND channel = ? AND container_id = ? AND ended_at IS NULL`
    return this.kernel.db.get<{ n: number }>(sql, [workspaceId, channel, id])?.n ?? 0
  }

  thread(row: ContainerRow): Thread {
    const sql = `SELECT count(*) AS n FROM network_participant WHERE workspace_id = ? AND channel = ? AND container_id = ?`
    const participants = this.kernel.db.get<{ n: number }>(sql, [row.workspaceId, row.channel, row.id])
    return {
      channel: row.channel,
      message_count: row.messages,
      open_work_count: this.openWork(row),
      participant_count: participants?.n ?? 0,
      root_message_id: row.rootId ?? '',
      thread_id: row.id,
      ...this.#common(row),
      title: row.title,
      coordination_cost: this.usage.cost(row),
      ...(row.openedBy !== undefined && { opened_by_peer_id: row.openedBy }),
      ...(row.openedSession !== undefined && { opened_session_id: row.openedSession }),
    }
  }

  direct(row: ContainerRow): Direct {
    return {
      channel: row.channel,
      direct_id: row.id,
      message_count: row.messages,
      open_work_count: this.openWork(row),
      session_a: row.sessionA ?? '',
      session_b: row.sessionB ?? '',
      ...this.#common(row),
    }
  }

  #common(row: ContainerRow) {
    return {
      last_activity_at: iso(row.lastAt),
      opened_at: iso(row.openedAt),
      workspace_id: row.workspaceId,
      ...(row.preview !== undefined && { last_message_preview: row.preview }),
    }
  }

  wire(row: MessageRow): ConversationMessage {
    const envelope = JSON.parse(row.envelope) as Envelope
    const { text, intent } = envelope.body as { readonly text?: string; readonly intent?: string }
    const { causation_id: causation, reply_to: replyTo, trace_id: trace, mentions, to } = envelope
    return {
      body: envelope.body,
      channel: row.channel,
      direction: row.daemon === undefined ? 'sent' : 'received',
      kind: row.kind,
      local: row.daemon === undefined,
      message_id: row.id,
      peer_from: row.sender,
      preview_text: row.preview,
      size_bytes: row.size,
      timestamp: iso(row.at),
      workspace_id: row.workspaceId,
      ...notWokenOf(this.kernel.db, row),
      ...(causation && { causation_id: causation }),
      ...(intent !== undefined && { intent }),
      ...(mentions && { mentions: [...mentions] }),
      ...(to && { peer_to: to }),
      ...(replyTo && { reply_to: replyTo }),
      ...(row.sessionId !== undefined && { session_id: row.sessionId }),
      ...(row.surface !== undefined && { surface: row.surface }),
      ...(text !== undefined && { text }),
      ...(row.containerId !== undefined && {
        [row.surface === 'direct' ? 'direct_id' : 'thread_id']: row.containerId,
      }),
      ...(trace && { trace_id: trace }),
      ...(row.workId !== undefined && { work_id: row.workId }),
    }
  }

  #seqOf(workspaceId: string, id: string | undefined): number | undefined {
    if (id === undefined) return undefined
    const row = messages.get(this.kernel.db, { workspaceId, id })
    if (!row) throw NetworkErrors.network_message_not_found(`there is no message ${JSON.stringify(id)}`)
    return row.seq
  }
}

const OPEN_WORK = `SELECT 1 FROM network_work w WHERE w.workspace_id = network_container.workspace_id
  AND w.channel = network_container.channel AND w.container_id = network_container.id AND w.ended_at IS NULL`
