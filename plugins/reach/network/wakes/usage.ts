import * as v from 'valibot'
import { Paging } from '../../../../kernel/kit/page.js'
import { matching } from '../../../../kernel/kit/table.js'
import { iso, type SqlValue } from '../../../../kernel/plugin.js'
import { durationText } from '../../../../schemas/duration.js'
import type { SessionCost, Thread } from '../../../../schemas/network/messages.js'
import type { NetworkUsageQuery } from '../../../../schemas/network/usage.js'
import type { ConversationUsage } from '../../../../schemas/tasks.js'
import { NetworkErrors } from '../api.js'
import type { K } from '../needs.js'
import { NetworkEnabled } from '../settings.js'
import { type ContainerRow, peers } from '../tables.js'
import type { BoundsOf } from './bounds.js'
import { exhaustedBy, keyOf, type Ledger, type Spent } from './ledger.js'
import { type WakeRow, wakes } from './table.js'

const LIMIT = 50
/** Bytes that count as one token if the number is unknown. */
const BYTES_PER_TOKEN = 4
/** Owner kinds that wakes are charged to: automations use sessions or task runs, and loops do not run here. */
const CHARGED: ReadonlySet<string> = new Set(['session', 'task_run'])
const paging = new Paging({ place: v.tuple([v.number(), v.string()]) })

type Detail = ConversationUsage['details'][number]
type Owner = Pick<WakeRow, 'ownerKind' | 'ownerId' | 'workspaceId' | 'sessionId'>

/** Reads the cost of wakes. */
export class Usage {
  constructor(
    private readonly kernel: K,
    private readonly ledger: Ledger,
    private readonly boundsOf: BoundsOf,
  ) {}

  /** @throws Fault `invalid_cursor`, `network_owner_uncharged` */
  read(workspaceId: string, query: NetworkUsageQuery): ConversationUsage {
    const { owner_kind: ownerKind, owner_id: ownerId, run_id: runId, channel, cursor, limit = LIMIT } = query
    if (ownerKind !== undefined && !CHARGED.has(ownerKind))
      throw NetworkErrors.network_owner_uncharged(
        `wakes are not charged to a ${ownerKind}, but to its sessions (session) and to the runs of its tasks (task_run)`,
      )
    const of = { query: { workspaceId, ownerKind, ownerId, runId, channel } }
    const position = paging.after(of, cursor)
    const all = matching(
      ['workspace_id = ?', workspaceId],
      ['owner_kind = ?', ownerKind],
      ['owner_id = ?', ownerId],
      ['task_run_id = ?', runId],
      ['channel = ?', channel],
    )
    const total = this.#total(all.sql, all.params)
    const { sql, params } = matching(
      [all.sql, ...all.params],
      ['(reserved_at, id) < (?, ?)', ...(position ?? [undefined])],
    )
    const tail = `WHERE ${sql} ORDER BY reserved_at DESC, id DESC LIMIT +?`
    const rows = wakes.query(this.kernel.db, tail, [...params, limit + 1])
    const { rows: page, next_cursor } = paging.cut(of, rows, limit, row => [row.reservedAt, row.id])
    const budget = this.#budget(workspaceId, query)
    return {
      workspace_id: workspaceId,
      details: page.map(row => this.#detail(row)),
      total,
      ...(budget && { budget }),
      ...(next_cursor !== undefined && { next_cursor }),
    }
  }

  /** Cost of a thread for each session that received messages of it. */
  costs({ workspaceId, channel, id }: ContainerRow): SessionCost[] {
    const rows = this.kernel.db.all<{ id: string; n: number; bytes: number; first: number; last: number }>(
      `SELECT d.session_id AS id, count(*) AS n, sum(d.bytes) AS bytes, min(d.delivered_at) AS first, max(d.delivered_at) AS last
       FROM network_message m JOIN network_delivery d ON d.seq = m.seq
       WHERE m.workspace_id = ? AND m.channel = ? AND m.container_id = ? AND d.bytes IS NOT NULL
       GROUP BY d.session_id ORDER BY d.session_id`,
      [workspaceId, channel, id],
    )
    return rows.map(({ id, n, bytes, first, last }) => ({
      ...{ session_id: id, delivered_count: n, prompt_size_bytes: bytes },
      ...{ estimated_prompt_tokens: tokensOf(bytes), first_delivered_at: iso(first), last_delivered_at: iso(last) },
    }))
  }

  /** Total cost for all sessions. */
  cost(row: ContainerRow): Thread['coordination_cost'] {
    const costs = this.costs(row)
    const sum = (of: 'delivered_count' | 'prompt_size_bytes') => costs.reduce((all, one) => all + (one[of] ?? 0), 0)
    const bytes = sum('prompt_size_bytes')
    return {
      ...{ delivered_count: sum('delivered_count'), prompt_size_bytes: bytes },
      ...{ estimated_prompt_tokens: tokensOf(bytes) },
    }
  }

  #total(where: string, params: readonly SqlValue[]): ConversationUsage['total'] {
    const row = this.kernel.db.get<Record<string, number>>(
      `SELECT count(*) AS n, total(usage_state = 'actual') AS actual, total(usage_state = 'reserved') AS reserved,
         total(usage_state = 'usage_unavailable') AS unavailable, total(wall_ms) AS wall, total(input_tokens) AS input,
         total(output_tokens) AS output FROM network_wake WHERE ${where}`,
      params,
    )
    const { n = 0, actual = 0, reserved = 0, unavailable = 0, wall = 0, input = 0, output = 0 } = row ?? {}
    return {
      ...{ wake_count: n, actual_wake_count: actual, reserved_wake_count: reserved },
      ...{ unavailable_wake_count: unavailable, charged_wall_time: durationText(wall) },
      ...{ input_tokens: input, output_tokens: output },
    }
  }

  /** Budget of the requested owner, if it had a wake. */
  #budget(workspaceId: string, { owner_kind: kind, owner_id: id, run_id: runId }: NetworkUsageQuery) {
    const owner = kind !== undefined && id !== undefined ? { ownerKind: kind, ownerId: id } : undefined
    if (owner === undefined && runId === undefined) return undefined
    const [newest] = wakes.all(
      this.kernel.db,
      { workspaceId, ...(owner ?? { taskRunId: runId as string }) },
      'ORDER BY reserved_at DESC, id DESC LIMIT 1',
    )
    if (!newest) return undefined
    const budget = this.boundsOf(newest.sessionId)
    const charged = { ...budget, owner: { kind: newest.ownerKind, id: newest.ownerId } }
    const spent = this.ledger.spent(this.kernel.db, [charged]).get(keyOf(charged.owner)) as Spent
    const exhausted = exhaustedBy(spent, budget.bounds)
    return {
      ...{ input_tokens_used: spent.inputTokens, output_tokens_used: spent.outputTokens, wakes_used: spent.wakes },
      ...{ wall_time_used: durationText(spent.wallMs), updated_at: iso(newest.settledAt ?? newest.reservedAt) },
      participation_status: this.#status(newest),
      ...(exhausted !== undefined && { exhausted_reason: exhausted }),
    }
  }

  #detail(row: WakeRow): Detail {
    return {
      ...{
        wake_id: row.id,
        workspace_id: row.workspaceId,
        channel: row.channel,
        depth: row.depth,
        root_id: row.rootId,
      },
      ...{ state: row.state, usage_state: row.usageState, task_run_id: row.taskRunId ?? '' },
      ...{
        charged_wall_time: durationText(row.wallMs),
        input_tokens: row.inputTokens,
        output_tokens: row.outputTokens,
      },
      ...{ reserved_at: iso(row.reservedAt), settled_at: row.settledAt === undefined ? null : iso(row.settledAt) },
      participation_status: this.#status(row),
      ...(row.reason !== undefined && { reason: row.reason }),
    }
  }

  #status({ ownerKind: kind, ownerId: id, workspaceId, sessionId }: Owner): Detail['participation_status'] {
    const available = this.kernel.config.get(NetworkEnabled)
    const isThere = peers.get(this.kernel.db, { sessionId, leftAt: null }) !== undefined
    const reason = !available ? 'network_disabled' : isThere ? undefined : 'not_live'
    return {
      ...{ available, owner: { kind, id, workspace_id: workspaceId }, participating: available && isThere },
      ...(reason !== undefined && { reason }),
    }
  }
}

const tokensOf = (bytes: number): number => Math.ceil(bytes / BYTES_PER_TOKEN)
