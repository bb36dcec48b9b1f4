import { readdir } from 'node:fs/promises'
import { command } from '../../../../kernel/kit/commands/command-line.js'
import { iso } from '../../../../kernel/plugin.js'
import type { DiagnosticItem } from '../../../../schemas/kernel/diagnostic.js'
import type { StatusMember } from '../../../desk/daemon/api.js'
import type { SessionsContext } from '../context.js'
import { providerOf } from '../runtime/selection.js'
import type { SessionRow, SessionTable } from '../table.js'
import { activityOf, isWaiting, silenceOf } from '../wire.js'
import type { LiveSession } from './live-session.js'

const RECENT_FAILURES = 10
/** Maximum number of unknown folders that are listed. */
const MOST_UNKNOWN = 50

interface Counts {
  readonly total: number
  readonly active: number
  readonly failed: number
  readonly byState: Readonly<Record<string, number>>
  readonly bytes: number
}

/** The status members of sessions. */
export function statusMembers(context: SessionsContext, live: () => readonly LiveSession[]): StatusMember[] {
  return [
    { path: 'daemon.active_sessions', read: () => countSessions(context).active },
    { path: 'daemon.total_sessions', read: () => countSessions(context).total },
    { path: 'sessions', read: () => sessionsMember(countSessions(context), live()) },
    { path: 'subprocess_health', read: () => subprocesses(live()) },
    { path: 'health', read: () => healthMember(context, live()) },
  ]
}

/** Doctor items about agent processes and failed sessions. */
export async function checkSessions(context: SessionsContext, live: readonly LiveSession[]): Promise<DiagnosticItem[]> {
  const counts = countSessions(context)
  const { monitored, unhealthy } = subprocesses(live)
  const ready: DiagnosticItem = {
    id: 'runtime.subprocess_health',
    code: unhealthy === 0 ? 'subprocess_health_ok' : 'subprocess_health_degraded',
    category: 'sessions',
    severity: 'info',
    title: 'Agent processes',
    message: `${monitored} running${unhealthy > 0 ? `, ${unhealthy} unresponsive` : ''}; active sessions: ${counts.active} of ${counts.total}`,
    data_freshness: 'live',
  }
  return [
    ready,
    ...hung(live),
    ...floods(live),
    ...damagedJournals(context),
    ...context.promptFiles.findings(),
    ...context.archive.findings(),
    ...(await withoutRow(context)),
    ...failures(context),
  ]
}

function hung(live: readonly LiveSession[]): DiagnosticItem[] {
  return live.flatMap(session => {
    const why = silenceOf(session)
    if (why === undefined) return []
    const { id, row } = session
    return [
      {
        id: `sessions.hung.${id}`,
        code: 'session_hung',
        category: 'sessions',
        severity: 'warning' as const,
        title: 'A session is unresponsive',
        message: `${id} of agent ${row.agent_name}: ${why}`,
        data_freshness: 'live',
        suggested_command: command('session stop', id),
        evidence: { session_id: id, pid: session.binding.group },
      },
    ]
  })
}

/** Sessions whose agent asks more questions than can be answered. */
function floods(live: readonly LiveSession[]): DiagnosticItem[] {
  return live.flatMap(({ id, row, binding }) => {
    const refused = binding.running?.permissions.asking.refused ?? 0
    if (refused === 0) return []
    return [
      {
        id: `sessions.permissions.${id}`,
        code: 'session_permission_flood',
        category: 'sessions',
        severity: 'warning' as const,
        title: 'An agent asks too many questions',
        message: `${id} of agent ${row.agent_name}: ${refused} questions refused in its last turn`,
        data_freshness: 'live',
        suggested_command: command('session history', id),
        evidence: { session_id: id, refused },
      },
    ]
  })
}

function damagedJournals({ logs }: SessionsContext): DiagnosticItem[] {
  return [...logs.damaged].map(([id, why]) => ({
    id: `sessions.journal.${id}`,
    code: 'session_journal_damaged',
    category: 'sessions',
    severity: 'error',
    title: 'The journal of a session is damaged',
    message: `the history of ${id} has gaps and can only be read: ${why}; other sessions are not concerned`,
    data_freshness: 'live',
    suggested_command: command('session remove', id),
    evidence: { session_id: id },
  }))
}

/** Whether a folder belongs to a session that was never stored. */
async function isBegun(folder: string): Promise<boolean> {
  const files = await readdir(folder).catch(() => ['unreadable'])
  return files.every(name => name === 'meta.json')
}

/** Folders of sessions that are missing in the catalog, as after an interrupted creation: they stay, and nothing reads them. */
async function withoutRow({ kernel, table, archive }: SessionsContext): Promise<DiagnosticItem[]> {
  const folders = await readdir(kernel.home.path('sessions'))
  const missing = folders.filter(name => !name.startsWith('.') && !table.get(name) && !archive.has(name))
  const hasBegun = await Promise.all(missing.map(name => isBegun(kernel.home.path('sessions', name))))
  // A kill before the catalog write: the creation was never confirmed, and nothing is lost.
  const unknown = missing.filter((_, n) => !hasBegun[n])
  if (unknown.length === 0) return []
  return [
    {
      id: 'sessions.rows',
      code: 'session_rows_missing',
      category: 'sessions',
      severity: 'warning',
      title: 'Sessions missing from the catalog',
      message: `${unknown.length} folders in ${kernel.home.path('sessions')} have no session in the catalog and are kept: ${unknown.slice(0, 3).join(', ')}; restore the svc.db that contains them, or remove them`,
      data_freshness: 'live',
      evidence: { session_ids: unknown.slice(0, MOST_UNKNOWN) },
    },
  ]
}

function failures(context: SessionsContext): DiagnosticItem[] {
  const crashed = recentFailures(context).filter(row => row.updated_at > context.kernel.clock.now() - 24 * 3_600_000)
  const [newest] = crashed
  if (!newest) return []
  return [
    {
      id: 'sessions.failures',
      code: 'sessions_failed',
      category: 'sessions',
      severity: 'warning',
      title: 'Sessions failed in the last day',
      message: `${crashed.length}${crashed.length === RECENT_FAILURES ? ' or more' : ''}; the newest: ${newest.failure_summary ?? ''}`,
      data_freshness: 'live',
      suggested_command: command('session history', newest.id),
      evidence: { session_ids: crashed.map(({ id }) => id) },
    },
  ]
}

const counted = new WeakMap<SessionTable, { readonly changes: number; readonly counts: Counts }>()

/** Counts once for all status members, until a session changes. */
function countSessions(context: SessionsContext): Counts {
  const { table } = context
  const known = counted.get(table)
  if (known?.changes === table.changes) return known.counts
  const counts = count(context)
  counted.set(table, { changes: table.changes, counts })
  return counts
}

function count({ kernel, archive }: SessionsContext): Counts {
  const rows = kernel.db.all<{ state: string; n: number; failed: number; bytes: number }>(
    `SELECT state, count(*) AS n, sum(failure_kind IS NOT NULL) AS failed, sum(journal_bytes) AS bytes
      FROM sessions_session GROUP BY state`,
  )
  const byState: Record<string, number> = Object.fromEntries(rows.map(({ state, n }) => [state, n]))
  const archived = archive.sums()
  if (archived.sessions > 0) byState.stopped = (byState.stopped ?? 0) + archived.sessions
  const total = rows.reduce((sum, { n }) => sum + n, archived.sessions)
  return {
    total,
    active: total - (byState.stopped ?? 0),
    failed: (rows.find(({ state }) => state === 'stopped')?.failed ?? 0) + archived.failed,
    byState,
    bytes: rows.reduce((sum, { bytes }) => sum + bytes, archived.bytes),
  }
}

function sessionsMember(counts: Counts, live: readonly LiveSession[]) {
  const hanging = live.filter(silenceOf).length
  const waiting = live.filter(session => isWaiting(session) && !silenceOf(session)).length
  const turns = live.filter(session => session.turn && !silenceOf(session)).length - waiting
  const moving = (counts.byState.starting ?? 0) + (counts.byState.stopping ?? 0)
  return {
    active: counts.active,
    total: counts.total,
    by_status: counts.byState,
    by_badge: {
      running: turns + moving,
      waiting,
      idle: Math.max(0, (counts.byState.active ?? 0) - turns - waiting - hanging),
      hung: hanging,
      failed: counts.failed,
      stopped: (counts.byState.stopped ?? 0) - counts.failed,
    },
    status: 'ok',
  }
}

function subprocesses(live: readonly LiveSession[]) {
  const running = live.filter(({ binding }) => binding.running)
  const sessions = running.flatMap(session => {
    const reason = silenceOf(session)
    if (reason === undefined) return []
    const { agent_name, workspace_id } = session.row
    const consecutive_failures = session.binding.standstill?.looks ?? 1
    return [{ session_id: session.id, agent_name, workspace_id, consecutive_failures, reason }]
  })
  const unhealthy = sessions.length
  const status = unhealthy > 0 ? 'degraded' : 'ok'
  return { monitored: running.length, healthy: running.length - unhealthy, unhealthy, sessions, status }
}

function healthMember(context: SessionsContext, live: readonly LiveSession[]) {
  const counts = countSessions(context)
  const now = context.kernel.clock.now()
  const kinds = failureKinds(context)
  return {
    active_agents: context.slots.used,
    active_sessions: counts.active,
    session_db_size_bytes: counts.bytes,
    persistence: { session_db_size_bytes: counts.bytes },
    activities: live.flatMap(session => {
      const { activity } = activityOf(session, now)
      return activity ? [{ session_id: session.id, status: 'prompting', ...activity }] : []
    }),
    failures: {
      status: 'ok',
      total: kinds.reduce((sum, [, n]) => sum + n, 0),
      by_kind: Object.fromEntries(kinds),
      recent: recentFailures(context).map(row => ({
        session_id: row.id,
        agent_name: row.agent_name,
        workspace_id: row.workspace_id,
        provider: providerOf(row),
        state: row.state,
        failure_kind: row.failure_kind ?? 'unknown_failure',
        summary: row.failure_summary ?? '',
        ...(row.failure_bundle && { crash_bundle_path: row.failure_bundle }),
        updated_at: iso(row.updated_at),
      })),
    },
  }
}

function failureKinds({ kernel }: SessionsContext): [string, number][] {
  const sql = `SELECT failure_kind AS kind, count(*) AS n FROM sessions_session
    WHERE state = 'stopped' AND failure_kind IS NOT NULL GROUP BY failure_kind`
  return kernel.db.all<{ kind: string; n: number }>(sql).map(({ kind, n }) => [kind, n])
}

function recentFailures({ kernel }: SessionsContext): SessionRow[] {
  const sql = `SELECT * FROM sessions_session WHERE state = 'stopped' AND failure_kind IS NOT NULL
    ORDER BY updated_at DESC LIMIT +?`
  return kernel.db.all<SessionRow>(sql, [RECENT_FAILURES])
}
