import { createHash } from 'node:crypto'
import { canonicalJson } from '../../../../kernel/kit/canonical.js'
import { command } from '../../../../kernel/kit/commands/command-line.js'
import { History } from '../../../../kernel/kit/history.js'
import { SerialBy } from '../../../../kernel/kit/serial.js'
import { column, type RowOf, table } from '../../../../kernel/kit/table.js'
import { shown } from '../../../../kernel/kit/text.js'
import { type Actor, iso } from '../../../../kernel/plugin.js'
import { type Job, type SuggestBody, Suggestion, type Trigger } from '../../../../schemas/automation.js'
import type { InboxSuggestion } from '../../../../schemas/sessions.js'
import { AutomationErrors } from '../api.js'
import type { Jobs } from '../jobs/jobs.js'
import type { K } from '../needs.js'
import { isoOrNull } from '../runs/run-wire.js'
import type { Triggers } from '../triggers/triggers.js'

/** Maximum number of pending suggestions per workspace. */
const MAX_PENDING = 50
/** How long a suggestion stays pending, and how many resolved ones are kept. */
const PENDING_MS = 30 * 24 * 60 * 60_000
const KEPT = 200

export const suggestionTable = `CREATE TABLE automation_suggestion (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, workspace TEXT NOT NULL, kind TEXT NOT NULL,
    dedup_key TEXT NOT NULL, body TEXT NOT NULL, source TEXT NOT NULL, status TEXT NOT NULL, created_at INTEGER NOT NULL,
    resolved_at INTEGER
  ) STRICT;
  CREATE INDEX automation_suggestion_workspace ON automation_suggestion (workspace, seq);`

type Status = 'pending' | 'accepted' | 'dismissed'

const { text, integer, time } = column

export const suggested = table('automation_suggestion', {
  seq: integer().generated(),
  id: text(),
  workspace: text(),
  kind: text<'job' | 'trigger'>(),
  dedup_key: text(),
  /** JSON of the body of the create request, without the workspace. */
  body: text(),
  source: text(),
  status: text<Status>(),
  created_at: time(),
  resolved_at: time().nullable(),
})
type Row = RowOf<typeof suggested>

/** An accepted suggestion, with the job or trigger that was created from it. */
interface Accepted {
  readonly job: Job
  readonly trigger?: Trigger
  readonly suggestion: Suggestion
}

/** Jobs and triggers suggested by agents and extensions. They have no effect until a user accepts them. */
export class Suggestions {
  readonly #history: History<Row>
  /** Decisions by suggestion: one waits for the other, so that two of them create one job. */
  readonly #decisions = new SerialBy()

  constructor(
    private readonly kernel: K,
    private readonly jobs: Jobs,
    private readonly triggers: Triggers,
  ) {
    this.#history = new History(kernel.db, {
      table: 'automation_suggestion',
      time: 'created_at',
      ended: "status <> 'pending'",
    })
  }

  /**
   * Validates and stores a suggestion. A pending suggestion with the same `dedup_key` is returned instead. Throws 404
   * `workspace_not_found`, 403 `suggestion_foreign` for an agent of another workspace, 409 `suggestion_limit`, and the errors of
   * creating the job or trigger.
   */
  async propose(
    actor: Actor,
    workspace: string,
    { job, trigger, dedup_key: dedupKey }: SuggestBody,
  ): Promise<Suggestion> {
    const workspaceId = await this.#workspaceId(workspace)
    const source = this.#sourceOf(actor, workspaceId)
    if ((job === undefined) === (trigger === undefined))
      throw AutomationErrors.suggestion_invalid('exactly one of job and trigger is required')
    const kind = job ? 'job' : 'trigger'
    const body = job ?? trigger ?? {}
    const id = this.kernel.ids.id('sug')
    const row = {
      id,
      workspace: workspaceId,
      kind,
      dedup_key:
        dedupKey ??
        createHash('sha256')
          .update(canonicalJson([kind, body]))
          .digest('hex'),
      body: JSON.stringify(body),
      source,
      status: 'pending',
      created_at: this.kernel.clock.now(),
      resolved_at: null,
    } as const
    await this.#judge(row)
    const kept = await this.kernel.db.tx(t => {
      const since = this.kernel.clock.now() - PENDING_MS
      t.run("DELETE FROM automation_suggestion WHERE status = 'pending' AND created_at < ?", [since])
      const pending = this.#rows(workspaceId, 'pending')
      const same = pending.find(one => one.dedup_key === row.dedup_key)
      if (same) return same
      if (pending.length >= MAX_PENDING) throw AutomationErrors.suggestion_limit()
      suggested.insert(t, row)
      return this.#row(id)
    })
    return this.#toWire(kept as Row)
  }

  /** Pending suggestions of all workspaces, oldest first. */
  waiting(): InboxSuggestion[] {
    const since = this.kernel.clock.now() - PENDING_MS
    const pending = "WHERE status = 'pending' AND created_at >= ? ORDER BY seq LIMIT +?"
    const rows = suggested.query(this.kernel.db, pending, [since, MAX_PENDING])
    return rows.map(({ id, workspace, kind, source, body, created_at }) => ({
      suggestion_id: id,
      workspace_id: workspace,
      kind: 'suggestion',
      title: `suggested ${kind} ${shown(String(JSON.parse(body).name))} by ${source}`,
      command: command('automation suggestions accept', id, '--workspace', workspace),
      created_at: iso(created_at),
    }))
  }

  /** Newest first. Throws `workspace_not_found`. */
  async list(workspace: string, status?: Status): Promise<Suggestion[]> {
    return this.#rows(await this.#workspaceId(workspace), status).map(row => this.#toWire(row))
  }

  /** Creates the job or trigger on behalf of the caller. The id is derived from the suggestion, so it is created once. */
  async accept(actor: Actor, workspace: string, id: string): Promise<Accepted> {
    const workspaceId = await this.#workspaceId(workspace)
    return this.#decisions.run(id, () => this.#accept(actor, this.#pending(workspaceId, id)))
  }

  async #accept(actor: Actor, row: Row): Promise<Accepted> {
    const wanted = { ...JSON.parse(row.body), scope: 'workspace', workspace_id: row.workspace }
    const made = row.id.slice('sug_'.length)
    if (row.kind === 'job') {
      // The job already exists if the daemon stopped between its creation and the end of the suggestion.
      const known = this.kernel.records.get('automation.job', `job_${made}`)
      if (!known) await this.jobs.create(actor, wanted, `job_${made}`)
      const suggestion = await this.#resolve(row, 'accepted')
      return { job: this.jobs.toWire(this.jobs.find(`job_${made}`)), suggestion }
    }
    const known = this.kernel.records.get('automation.trigger', `trg_${made}`)
    if (!known) await this.triggers.create(actor, wanted, `trg_${made}`)
    const suggestion = await this.#resolve(row, 'accepted')
    const trigger = this.triggers.toWire(this.triggers.find(`trg_${made}`))
    return { job: asJob(trigger), trigger, suggestion }
  }

  async dismiss(workspace: string, id: string): Promise<Suggestion> {
    const workspaceId = await this.#workspaceId(workspace)
    return this.#decisions.run(id, () => this.#resolve(this.#pending(workspaceId, id), 'dismissed'))
  }

  async #workspaceId(workspace: string): Promise<string> {
    return (await this.kernel.needs.workspaces.find(workspace)).id
  }

  /** The source of a suggestion. An agent may only use its own workspace. */
  #sourceOf({ id, origin, onBehalfOf }: Actor, workspace: string): string {
    if (origin !== 'agent_session') return `${origin ?? 'daemon'}:${onBehalfOf?.id ?? id}`
    const session = this.kernel.needs.sessions.get(id)
    if (!session || session.workspaceId !== workspace)
      throw AutomationErrors.suggestion_foreign(`session ${id} does not belong to workspace ${shown(workspace)}`)
    return `agent:${session.agentName}`
  }

  #rows(workspace: string, status?: Status): Row[] {
    const since = this.kernel.clock.now() - PENDING_MS
    const listed = `WHERE workspace = ? AND (status <> 'pending' OR created_at >= ?) AND (? IS NULL OR status = ?)
      ORDER BY seq DESC`
    return suggested.query(this.kernel.db, listed, [workspace, since, status ?? null, status ?? null])
  }

  #row(id: string): Row | undefined {
    return suggested.get(this.kernel.db, { id })
  }

  /** Throws 404 `suggestion_not_found`, 409 `suggestion_resolved`. */
  #pending(workspace: string, id: string): Row {
    const row = this.#row(id)
    const isOver = row?.status === 'pending' && row.created_at < this.kernel.clock.now() - PENDING_MS
    if (row?.workspace !== workspace || isOver)
      throw AutomationErrors.suggestion_not_found(`suggestion not found in this workspace: ${shown(id)}`)
    if (row.status !== 'pending')
      throw AutomationErrors.suggestion_resolved(`suggestion ${id} was already ${row.status}`)
    return row
  }

  async #resolve({ id, workspace }: Row, status: 'accepted' | 'dismissed'): Promise<Suggestion> {
    const row = await this.kernel.db.tx(t => {
      // A concurrent request may have resolved it.
      this.#pending(workspace, id)
      suggested.update(t, { id }, { status, resolved_at: this.kernel.clock.now() })
      this.#history.prune(t, { workspace }, { newest: KEPT })
      return this.#row(id)
    })
    return this.#toWire(row as Row)
  }

  /** Throws the error that creating the job or trigger would fail with. */
  #judge({ body, workspace, kind }: Pick<Row, 'body' | 'workspace' | 'kind'>): Promise<void> {
    const wanted = { ...JSON.parse(body), scope: 'workspace', workspace_id: workspace }
    return kind === 'job' ? this.jobs.judge(wanted) : this.triggers.judge(wanted)
  }

  #toWire(row: Row): Suggestion {
    const body = JSON.parse(row.body)
    const at = iso(row.created_at)
    const facts = {
      enabled: true,
      agent_name: '',
      target_kind: body.loop_target ? 'loop' : 'agent',
      ...body,
      fire_limit: body.fire_limit ?? this.jobs.fireLimit,
      retry: body.retry ?? { strategy: 'none', max_retries: 0, base_delay: '' },
      id: row.id,
      scope: 'workspace',
      source: 'dynamic',
      workspace_id: row.workspace,
      created_at: at,
      updated_at: at,
    }
    const unborn = { last_run: null, next_run: null, scheduler: null }
    const payload: Job =
      row.kind === 'job' ? { ...facts, ...unborn } : { ...asJob({ ...facts, webhook_secret_present: false }) }
    return suggested.wire(row, Suggestion, {
      payload,
      ...(row.kind === 'trigger' ? { trigger: { ...facts, webhook_secret_present: false } } : {}),
      resolved_at: isoOrNull(row.resolved_at),
      workspace_id: row.workspace,
    })
  }
}

/** The members of a trigger that a job also has, for clients that only know jobs. */
function asJob(trigger: Trigger): Job {
  const { event, filter, endpoint_slug, webhook_secret_present, ...common } = trigger
  return { ...common, schedule: null, last_run: null, next_run: null, scheduler: null }
}
