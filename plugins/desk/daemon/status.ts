import type { HostView, Records } from '../../../kernel/plugin.js'
import type { KindStatus, ReconcileStatus, StatusReply } from '../../../schemas/daemon.js'
import type { KindHealth } from '../../platform/reconcile/api.js'
import type { TcpApi, TcpState } from '../../platform/tcp/api.js'

/** The daemon's own state; every other status member comes from the plugin that owns it. */
export interface StatusFacts {
  readonly generatedAt: string
  readonly startedAt: string
  readonly uptimeSeconds: number
  readonly version: string
  readonly pid: number
  /** Why extensions do not run; undefined outside safe mode. */
  readonly safeMode: string | undefined
  readonly held: string | undefined
  readonly userHome: string
  readonly http: { readonly host: string; readonly port: number; readonly off?: string; readonly tls?: true }
  /** Path of the socket; empty if the daemon does not listen on one. */
  readonly socket: string
  readonly daemonStatus: string
  readonly databaseBytes: number
  readonly storeFailed: boolean
  readonly schemaStreams: StatusReply['daemon']['schema_streams']
  readonly plugins: StatusReply['health']['plugins']
  readonly reconcile: ReconcileStatus
  readonly config: StatusReply['config']
  readonly logAvailable: boolean
}

const UNAVAILABLE = 'unavailable'

/** Members of the status whose plugins are not there; they can be read alone. */
export const absent = {
  automation: () => ({
    enabled: false,
    scheduler_running: false,
    jobs: { enabled: 0, total: 0 },
    triggers: { enabled: 0, total: 0 },
    next_fire: null,
    scheduled_jobs: [],
    status: UNAVAILABLE,
  }),
  skills: () => ({
    disabled_count: 0,
    discovered_count: 0,
    runtime_available: false,
    diagnostics: [],
    status: UNAVAILABLE,
  }),
} satisfies { readonly [P in keyof StatusReply]?: () => StatusReply[P] }

const noBridges = () => ({
  auth_failures_total: 0,
  delivery_backlog: 0,
  delivery_dropped_total: 0,
  delivery_failures_total: 0,
  route_count: 0,
  status_counts: { auth_required: 0, degraded: 0, disabled: 0, error: 0, ready: 0, starting: 0 },
  total_instances: 0,
})

/** The whole status, with empty members for all other plugins. */
export function emptyStatus(facts: StatusFacts): StatusReply {
  const persistence = facts.storeFailed ? 'degraded' : 'ok'
  return {
    schema_version: '1',
    generated_at: facts.generatedAt,
    daemon: {
      status: facts.daemonStatus,
      version: facts.version,
      pid: facts.pid,
      ...(facts.safeMode === undefined ? {} : { safe_mode: facts.safeMode }),
      ...(facts.held === undefined ? {} : { held: facts.held }),
      started_at: facts.startedAt,
      http_host: facts.http.host,
      http_port: facts.http.port,
      ...(facts.http.off === undefined ? {} : { http_off: facts.http.off }),
      socket: facts.socket,
      user_home_dir: facts.userHome,
      active_sessions: 0,
      total_sessions: 0,
      network: { enabled: false, status: UNAVAILABLE },
      schema_streams: facts.schemaStreams,
    },
    sessions: { active: 0, total: 0, by_badge: {}, by_status: {}, status: UNAVAILABLE },
    subprocess_health: { monitored: 0, healthy: 0, unhealthy: 0, sessions: [], status: UNAVAILABLE },
    health: {
      status: facts.daemonStatus === 'degraded' ? 'degraded' : 'ok',
      version: facts.version,
      uptime_seconds: facts.uptimeSeconds,
      active_agents: 0,
      active_sessions: 0,
      activities: [],
      agent_probes: [],
      bridges: noBridges(),
      failures: { total: 0, by_kind: {}, recent: [], status: UNAVAILABLE },
      global_db_size_bytes: facts.databaseBytes,
      session_db_size_bytes: 0,
      persistence: { global_db_size_bytes: facts.databaseBytes, session_db_size_bytes: 0, status: persistence },
      plugins: facts.plugins,
      reconcile: facts.reconcile,
      retention: {
        enabled: false,
        retention_days: 0,
        sweep_interval_seconds: 0,
        deleted_event_summaries: 0,
        deleted_permission_log_rows: 0,
        deleted_token_stats: 0,
        deleted_token_usage_daily: 0,
        last_cutoff_at: null,
        last_sweep_at: null,
        last_sweep_status: UNAVAILABLE,
      },
    },
    memory: {
      configured: false,
      enabled: false,
      dream_enabled: false,
      global_files: 0,
      indexed_files: 0,
      last_consolidation: null,
      last_operation_at: null,
      last_reindex: null,
      operation_count: 0,
      orphaned_files: 0,
      status: UNAVAILABLE,
      workspace_count: 0,
      workspace_files: 0,
    },
    automation: absent.automation(),
    tasks: {
      active_orphan_runs: 0,
      channel_mismatch_since_start: 0,
      duplicate_ingress_since_start: 0,
      forced_stops_since_start: 0,
      oldest_queue_age_ms: 0,
      oldest_queued_at: null,
      owner_totals: [],
      queue_depth: [],
      queue_depth_total: 0,
      recovery_since_start: { failed: 0, marked_running: 0, requeued: 0 },
      run_totals: [],
      status: UNAVAILABLE,
      stuck_runs: [],
      task_totals: [],
    },
    bridges: { ...noBridges(), status: UNAVAILABLE },
    providers: [],
    mcp_servers: [],
    skills: absent.skills(),
    config: facts.config,
    log_tail: { available: facts.logAvailable, status: facts.logAvailable ? 'ok' : UNAVAILABLE },
  }
}

/**
 * Merges a contribution into a status: objects member by member, any other value replaces the former one. If the owner of an
 * `unavailable` member does not state a status, it becomes `ok`.
 */
export function mergeMember(status: StatusReply, path: string, value: unknown): void {
  let target = status as unknown as Record<string, unknown>
  const names = path.split('.')
  for (const name of names.slice(0, -1)) {
    const next = target[name]
    target[name] = isPlain(next) ? next : {}
    target = target[name] as Record<string, unknown>
    present(target)
  }
  assign(target, names.at(-1) ?? path, value)
}

function assign(target: Record<string, unknown>, name: string, value: unknown): void {
  const old = target[name]
  // A list cannot carry the reason of a failed read, so it stays as it is.
  if (value === undefined || (Array.isArray(old) && !Array.isArray(value))) return
  if (!isPlain(old) || !isPlain(value)) {
    target[name] = value
    return
  }
  present(old)
  for (const [member, part] of Object.entries(value)) assign(old, member, part)
}

function present(member: Record<string, unknown>): void {
  if (member.status === UNAVAILABLE) member.status = 'ok'
}

const isPlain = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Most quarantined records that are listed; more would make the status of a broken kind unreadable. */
const QUARANTINED_SHOWN = 100

/** State of every kind in the reconcile loop and the record store, as one status member. */
export function reconcileStatus(
  health: readonly KindHealth[],
  kinds: ReturnType<Records['kinds']>,
  iso: (ms: number) => string,
): ReconcileStatus {
  const byKind = new Map(health.map(entry => [entry.kind, entry]))
  const rows = kinds.map(({ name, registered, onDemand, count }): KindStatus => {
    const entry = byKind.get(name)
    return {
      kind: name,
      registered,
      projected: entry !== undefined,
      records: count,
      pending: entry?.pending ?? 0,
      quarantined: entry?.quarantined.length ?? 0,
      status: registered ? (entry?.status ?? (onDemand ? 'healthy' : 'unprojected')) : 'unregistered',
    }
  })
  const failing = health.filter(entry => entry.status !== 'healthy').map(entry => entry.kind)
  const quarantined = health
    .flatMap(entry => entry.quarantined)
    .slice(0, QUARANTINED_SHOWN)
    .map(({ kind, id, attempts, error, retryAt }) => ({ kind, id, attempts, error, retry_at: iso(retryAt) }))
  const unprojected = rows.flatMap(({ kind, status, records }) => (status === 'unprojected' && records > 0 ? kind : []))
  return { status: failing.length > 0 ? 'degraded' : 'ok', failing, unprojected, kinds: rows, quarantined }
}

/** Address of TCP; port 0 and the reason if it is off. */
export function tcpAddress(host: HostView, tcp: TcpApi | undefined): StatusFacts['http'] {
  for (const listener of host.listeners()) if (listener.door === 'tcp') return listener
  const state = tcpState(tcp)
  return { host: '', port: 0, ...('why' in state ? { off: state.why } : {}) }
}

/** State of TCP; also defined if no plugin serves it. */
export const tcpState = (tcp: TcpApi | undefined): TcpState =>
  tcp?.state ?? { status: 'disabled', why: 'no plugin serves it' }

/** Path of the socket that the daemon listens on. */
export function socketPath(host: HostView): string | undefined {
  for (const listener of host.listeners()) if (listener.door === 'socket') return listener.path
  return undefined
}
