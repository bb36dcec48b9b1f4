import type { Reads, Tx } from '../../../../kernel/plugin.js'
import type { Budget, BudgetKind } from '../../../../schemas/tasks.js'
import {
  type Amounts,
  type Dimension,
  type Limits,
  leftOf,
  NOTHING,
  plus,
  toWire,
  unusedOf,
  usedUp,
} from './amounts.js'
import { type BudgetRow, budgetTable, type Hold, holdTable } from './tables.js'

export const dayOf = (at: number): string => new Date(at).toISOString().slice(0, 10)
export const PERIOD = { task: 'total', agent: 'day' } as const

/** Limits, usage and reservations of budgets. */
export class Ledger {
  constructor(
    private readonly reads: Reads,
    private readonly now: () => number,
  ) {}

  budget(kind: BudgetKind, ref: string, reads: Reads = this.reads): BudgetRow | undefined {
    return budgetTable.get(reads, { kind, ref })
  }

  all(): BudgetRow[] {
    return budgetTable.all(this.reads, {}, 'ORDER BY kind, ref LIMIT 1000')
  }

  /** Total usage of all runs of a task, or today's usage of all runs of an agent. */
  spent(kind: BudgetKind, ref: string, reads: Reads = this.reads): Amounts {
    const sums = 'SELECT total(tokens) AS tokens, total(cost) AS cost, total(wall_ms) AS wall_ms FROM tasks_spend'
    const row =
      kind === 'task'
        ? reads.get<Amounts>(`${sums} WHERE task_id = ?`, [ref])
        : reads.get<Amounts>(`${sums} WHERE agent_name = ? AND day = ?`, [ref, dayOf(this.now())])
    return row ?? NOTHING
  }

  /** Unused reservations of active runs, except one of them. */
  reserved(kind: BudgetKind, ref: string, without = '', reads: Reads = this.reads): Amounts {
    const column = kind === 'task' ? 'task_id' : 'agent_name'
    const holds = holdTable.query(reads, `WHERE ${column} = ? AND run_id <> ?`, [ref, without])
    return holds.reduce((sum, { caps, used }) => {
      const cap = caps[kind]
      return cap ? plus(sum, unusedOf(cap, used)) : sum
    }, NOTHING)
  }

  /** The amount of a budget that is still available to a hold. */
  left(budget: BudgetRow, without: string, reads: Reads = this.reads): Limits {
    const { kind, ref } = budget
    return leftOf(limitsOf(budget), plus(this.spent(kind, ref, reads), this.reserved(kind, ref, without, reads)))
  }

  hold(of: { readonly runId: string } | { readonly sessionId: string }, reads: Reads = this.reads): Hold | undefined {
    return holdTable.get(reads, of)
  }

  holds(): Hold[] {
    return holdTable.all(this.reads)
  }

  /** When the first hold exhausts its time, in epoch milliseconds; undefined without time budgets. */
  nextEnd(): number | undefined {
    const ends = this.holds().flatMap(({ caps, used, countedAt }) =>
      [caps.task, caps.agent].flatMap(cap =>
        typeof cap?.wall_ms === 'number' ? [countedAt + cap.wall_ms - used.wall_ms] : [],
      ),
    )
    return ends.length === 0 ? undefined : Math.min(...ends)
  }

  /** Adds the usage since the last count, and stores what the agent has reported so far. */
  add(t: Tx, hold: Hold, more: Amounts, reported: Hold['told']): Hold {
    const used = plus(hold.used, more)
    const now = this.now()
    t.run(
      `INSERT INTO tasks_spend (run_id, agent_name, day, task_id, tokens, cost, wall_ms) VALUES (?, ?, ?, ?, ?, ?, ?)
       ON CONFLICT (run_id, agent_name, day) DO UPDATE SET
         tokens = tokens + excluded.tokens, cost = cost + excluded.cost, wall_ms = wall_ms + excluded.wall_ms`,
      [hold.runId, hold.agentName, dayOf(now), hold.taskId, more.tokens, more.cost, Math.round(more.wall_ms)],
    )
    const after = { ...hold, used, told: reported, countedAt: now }
    holdTable.replace(t, after)
    return after
  }

  toWire(row: BudgetRow): Budget {
    const { kind, ref } = row
    const [limit, spent, reserved] = [limitsOf(row), this.spent(kind, ref), this.reserved(kind, ref)]
    return {
      kind,
      ref,
      period: PERIOD[kind],
      limit: toWire(limit),
      spent: toWire(spent),
      reserved: toWire(reserved),
      left: toWire(leftOf(limit, plus(spent, reserved))),
      exhausted: usedUp(limit, spent) !== undefined,
      updated_at: new Date(row.updated_at).toISOString(),
    }
  }
}

/** Tokens that agents reported for runs, by run; a run without a report is absent. */
export function tokensOf(reads: Reads, runs: readonly string[]): ReadonlyMap<string, number> {
  const rows = reads.rows(
    `SELECT run_id, sum(tokens) FROM tasks_spend WHERE run_id IN (SELECT value FROM json_each(?))
     GROUP BY run_id HAVING sum(tokens) > 0`,
    [JSON.stringify(runs)],
  )
  return new Map(rows.map(([run, tokens]) => [String(run), Math.floor(Number(tokens))]))
}

export const limitsOf = ({ tokens, cost, wall_ms }: BudgetRow): Limits => ({ tokens, cost, wall_ms })

/** The usage that an agent has to report so that the limits can be enforced. */
export const toldOf = (limits: Limits): readonly Exclude<Dimension, 'wall_ms'>[] =>
  (['tokens', 'cost'] as const).filter(name => limits[name] !== null)
