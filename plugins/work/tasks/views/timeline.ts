import { type Actor, type Frame, iso, type SqlValue } from '../../../../kernel/plugin.js'
import type {
  AllRunsReply,
  BacklogQuery,
  BacklogReply,
  ListAllRunsQuery,
  TimelineEntry,
  TreeNode,
  TreeReply,
} from '../../../../schemas/tasks.js'
import type { TaskCore } from '../core.js'
import type { EventRow } from '../journal.js'
import { optionalMember } from '../rows.js'
import { activeToWire, type RunRow, runToWire } from '../runs/run-row.js'
import { summaryToWire, type TaskRow } from '../tasks/task-row.js'
import { listAllRuns } from './all-runs.js'
import type { TaskDetails } from './detail.js'
import { eventToWire } from './detail.js'

const DEFAULT_ENTRIES = 200
/** Entries that a stream reads per batch. */
const BATCH = 200
const DEFAULT_BACKLOG = 50

/** The part of an event payload that people want to read. */
function noteOf(payload: unknown): string | undefined {
  const { from, to, ...more } = (payload ?? {}) as Readonly<Record<string, unknown>>
  if (typeof from === 'string' && typeof to === 'string') return `${from} -> ${to}`
  const texts = ['reason', 'error', 'note', 'title', 'previous_run_id', 'depends_on_task_id']
  return texts.map(name => more[name]).find(text => typeof text === 'string' && text !== '') as string | undefined
}

/** Timelines, trees and the backlog. */
export class TaskHistory {
  constructor(
    private readonly core: TaskCore,
    private readonly details: TaskDetails,
  ) {}

  /** The runs of all tasks, newest first. */
  runs(actor: Actor, query: ListAllRunsQuery): AllRunsReply {
    return listAllRuns(this.core, actor, query)
  }

  /** The events after a position, oldest first. */
  timeline(id: string, after = 0, limit = DEFAULT_ENTRIES): TimelineEntry[] {
    const task = this.core.tasks.find(id)
    const rows = this.core.kernel.db.all<EventRow>(
      'SELECT * FROM tasks_event WHERE task_id = ? AND seq > ? ORDER BY seq LIMIT +?',
      [id, after, limit],
    )
    const summary = summaryToWire(task)
    const runs = new Map<string, RunRow | undefined>()
    return rows.map(row => {
      const { event_type, actor, origin, payload, timestamp } = eventToWire(row)
      if (row.run_id !== null && !runs.has(row.run_id)) runs.set(row.run_id, this.core.runs.get(row.run_id))
      const run = runs.get(row.run_id ?? '')
      return {
        sequence: row.seq,
        event_id: row.event_id,
        event_type,
        actor,
        origin,
        ...(payload === undefined ? {} : { payload }),
        ...optionalMember('note', noteOf(payload)),
        run: run ? activeToWire(run, task.max_attempts) : null,
        task: summary,
        timestamp,
      }
    })
  }

  /** The newest events, oldest first. */
  newest(id: string, count: number): TimelineEntry[] {
    const row = this.core.kernel.db.row(
      'SELECT seq FROM tasks_event WHERE task_id = ? ORDER BY seq DESC LIMIT 1 OFFSET +?',
      [id, count],
    )
    return this.timeline(id, Number(row?.[0] ?? 0), count)
  }

  /** Streams events, each once, until the reader disconnects or the task is deleted. */
  async *stream(id: string, after: number, signal: AbortSignal): AsyncGenerator<Frame> {
    let at = after
    while (!signal.aborted && this.core.tasks.get(id)) {
      // Before the events are read, so that none is missed.
      const changed = this.core.journal.changed(id, signal)
      const frames = this.frames(id, at)
      for (const frame of frames) {
        at = Number(frame.id)
        yield frame
      }
      if (frames.length < BATCH) await changed
    }
  }

  /** The next frames of a stream after a position. */
  frames(id: string, after: number): Frame[] {
    return this.timeline(id, after, BATCH).map(timeline => {
      const { sequence, event_type: type } = timeline
      return { id: String(sequence), event: type, data: { sequence, timeline, type } }
    })
  }

  tree(id: string): TreeReply['tree'] {
    const depths = new Map<string, number>()
    const [root, ...descendants] = this.core.tasks.subtree(id).map(row => {
      const depth = row.id === id ? 0 : (depths.get(row.parent_task_id ?? '') ?? 0) + 1
      depths.set(row.id, depth)
      return this.#node(row, depth)
    })
    return { root: root as TreeNode, descendants }
  }

  /** Queued runs in claim order; with `include_paused` also those of paused tasks. */
  backlog(query: BacklogQuery, workspace: string | undefined): BacklogReply['backlog'] {
    const conditions = ["r.status = 'queued'"]
    const params: SqlValue[] = []
    if (!query.include_paused) conditions.push('t.pausing_task IS NULL')
    if (query.scope === 'global') conditions.push("r.place = ''")
    if (query.scope === 'workspace') conditions.push("r.place <> ''")
    if (workspace !== undefined) {
      conditions.push('r.place = ?')
      params.push(workspace)
    }
    const from = `FROM tasks_run r JOIN tasks_task t ON t.id = r.task_id WHERE ${conditions.join(' AND ')}`
    const total = this.core.kernel.db.row(`SELECT count(*) ${from}`, params)
    const runs = this.core.kernel.db.all<RunRow>(
      `SELECT r.* ${from} ORDER BY r.priority DESC, r.queued_at, r.id LIMIT +?`,
      [...params, query.limit ?? DEFAULT_BACKLOG],
    )
    return {
      runs: runs.map(run => ({
        run: runToWire(run),
        task: this.details.overview(this.core.tasks.find(run.task_id)),
      })),
      total: Number(total?.[0] ?? 0),
    }
  }

  #node(row: TaskRow, depth: number): TreeNode {
    const [active] = this.core.runs.open(row.id)
    const children = this.core.kernel.db.row('SELECT count(*) FROM tasks_task WHERE parent_task_id = ?', [row.id])
    return {
      task: summaryToWire(row),
      depth,
      ...optionalMember('parent_task_id', row.parent_task_id),
      child_count: Number(children?.[0] ?? 0),
      active_run: active ? activeToWire(active, row.max_attempts) : null,
      last_activity_at: iso(row.last_activity_at),
    }
  }
}
