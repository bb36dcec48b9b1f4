import { History } from '../../../kernel/kit/history.js'
import { iso, type PluginKernel } from '../../../kernel/plugin.js'
import type { DiagnosticItem } from '../../../schemas/kernel/diagnostic.js'
import type {
  ApplyEntry,
  ApplyLifecycle,
  ApplyStatus,
  ListApplyQuery,
  NextAction,
  SettingsWriteTarget,
} from '../../../schemas/settings.js'

/** Most records that are kept; the oldest are removed. */
const KEPT = 1000

export const applyTable = `CREATE TABLE settings_apply (
  seq INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  actor TEXT NOT NULL,
  status TEXT NOT NULL,
  lifecycle TEXT NOT NULL,
  next_action TEXT NOT NULL,
  target TEXT NOT NULL,
  keys TEXT NOT NULL,
  generation INTEGER NOT NULL,
  active TEXT NOT NULL,
  desired TEXT NOT NULL,
  diagnostics TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  applied_at INTEGER,
  updated_at INTEGER NOT NULL
) STRICT;
CREATE INDEX settings_apply_status ON settings_apply (status)`

interface Row {
  readonly seq: number
  readonly id: string
  readonly actor: string
  readonly status: ApplyStatus
  readonly lifecycle: ApplyLifecycle
  readonly next_action: NextAction
  readonly target: SettingsWriteTarget
  readonly keys: string
  readonly generation: number
  readonly active: string
  readonly desired: string
  readonly diagnostics: string
  readonly created_at: number
  readonly applied_at: number | null
  readonly updated_at: number
}

/** A change before it is made. */
export interface Intent {
  readonly actor: string
  readonly lifecycle: ApplyLifecycle
  readonly target: SettingsWriteTarget
  readonly keys: readonly string[]
  readonly generation: number
  readonly active: string
  readonly desired: string
}

/** The outcome of a change. */
export interface Ending {
  readonly status: Exclude<ApplyStatus, 'pending_apply'>
  readonly next: NextAction
  readonly generation: number
  readonly active: string
  /** Hash of the layers after the change, if it differs from the intended one. */
  readonly desired?: string
  readonly diagnostics?: readonly DiagnosticItem[]
}

/** Allowed transitions between the states of a record. */
const transitions: Readonly<Record<ApplyStatus, readonly ApplyStatus[]>> = {
  pending_apply: ['applied', 'blocked', 'failed'],
  // The next start reads the file.
  blocked: ['applied'],
  applied: [],
  failed: [],
}

/** Record of all changes of settings: actor, keys and outcome, but never values. */
export class ApplyLog {
  readonly #history: History<Row>

  constructor(private readonly kernel: Pick<PluginKernel, 'db' | 'clock' | 'ids' | 'redact'>) {
    this.#history = new History<Row>(kernel.db, { table: 'settings_apply', time: 'created_at' })
  }

  /** Records a change before it is made, so that a crash leaves a trace of it; durable when `written` resolves. */
  begin({ keys, ...intent }: Intent): { readonly id: string; readonly written: Promise<void> } {
    const id = this.kernel.ids.id('apl')
    const now = this.kernel.clock.now()
    const written = this.kernel.db.tx(t => {
      this.#history.append(t, {
        id,
        ...intent,
        keys: JSON.stringify(keys),
        status: 'pending_apply',
        next_action: 'none',
        diagnostics: '[]',
        created_at: now,
        applied_at: null,
        updated_at: now,
      })
      this.#history.prune(t, {}, { newest: KEPT })
    })
    return { id, written }
  }

  /**
   * Records the outcome. The reply of a request waits until everything written before it is on the disk, so this resolves once the
   * row is written: the audit entry of the request then shares its sync. A write that is refused or held back is waited for.
   */
  async end(id: string, { status, next, generation, active, desired, diagnostics = [] }: Ending): Promise<void> {
    const now = this.kernel.clock.now()
    const from = Object.entries(transitions).flatMap(([state, to]) => (to.includes(status) ? [state] : []))
    let isWritten = false
    const durable = this.kernel.db.tx(t => {
      t.run(
        `UPDATE settings_apply SET status = ?, next_action = ?, generation = ?, active = ?, desired = coalesce(?, desired),
         diagnostics = ?, applied_at = ?, updated_at = ?
         WHERE id = ? AND status IN (${from.map(() => '?').join(', ')})`,
        [
          status,
          next,
          generation,
          active,
          desired ?? null,
          JSON.stringify(this.kernel.redact.value(diagnostics)),
          status === 'applied' ? now : null,
          now,
          id,
          ...from,
        ],
      )
      isWritten = true
    })
    durable.catch(() => {}) // the reply fails by the same error
    if (!isWritten) await durable
  }

  /** The newest record, in any state. */
  newest(): { readonly generation: number; readonly active: string; readonly desired: string } | undefined {
    return this.#history.newest({})
  }

  /** Unfinished records of an earlier daemon. */
  open(): readonly { readonly id: string; readonly status: ApplyStatus; readonly desired: string }[] {
    return this.kernel.db.all<Row>(`SELECT * FROM settings_apply WHERE status IN ('pending_apply', 'blocked')`)
  }

  /** Newest first. */
  list({ status, actor, limit = 50 }: ListApplyQuery): ApplyEntry[] {
    return this.#history.page({ status, actor }, { limit: limit === 0 ? KEPT : limit }).map(toWire)
  }
}

const toWire = (row: Row): ApplyEntry => {
  const diagnostics = JSON.parse(row.diagnostics) as DiagnosticItem[]
  return {
    id: row.id,
    active_config_hash: row.active,
    actor: row.actor,
    applied_at: row.applied_at === null ? null : iso(row.applied_at),
    created_at: iso(row.created_at),
    desired_config_hash: row.desired,
    ...(diagnostics.length > 0 && { diagnostics }),
    diff_class: row.lifecycle,
    generation: row.generation,
    keys: JSON.parse(row.keys) as string[],
    lifecycle: row.lifecycle,
    next_action: row.next_action,
    status: row.status,
    updated_at: iso(row.updated_at),
    write_target: row.target,
  }
}
