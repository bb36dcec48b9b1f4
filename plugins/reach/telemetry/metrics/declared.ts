import type { MetricDeclaration } from '../api.js'

type More = Pick<MetricDeclaration, 'labels' | 'bounds'>
const as =
  (type: MetricDeclaration['type']) =>
  (name: string, help: string, more: More = {}): MetricDeclaration => ({ name, type, help, ...more })
const [counter, gauge, histogram, info] = [as('counter'), as('gauge'), as('histogram'), as('info')]

/** The metrics of the package, in display order. `npm run docs:reference` generates docs/reference/metrics.md from them. */
export const declared = {
  build: info('svc_build', 'Version of the daemon and of Node', { labels: ['version', 'node'] }),
  requests: counter(
    'svc_http_requests',
    'Finished requests, by route template; status 0: the caller disconnected before the reply',
    {
      labels: ['route', 'method', 'status', 'door'],
    },
  ),
  requestSeconds: histogram(
    'svc_http_request_duration_seconds',
    'Time from the head of a request to the end of its reply, without streams',
    {
      labels: ['route', 'method'],
      bounds: [0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10],
    },
  ),
  streams: gauge('svc_event_streams', 'Open event streams, by the plugin that serves them', { labels: ['plugin'] }),
  events: counter('svc_events', 'Events that were appended to the log', { labels: ['event'] }),
  plugins: gauge('svc_plugins', 'Plugins, by state', { labels: ['state'] }),
  faults: gauge('svc_plugin_faults', 'Faults of plugins that svc plugin show lists', { labels: ['plugin'] }),
  passes: counter('svc_reconcile_passes', 'Reconcile passes; failed: at least one record of the pass failed', {
    labels: ['kind', 'outcome'],
  }),
  pending: gauge('svc_reconcile_pending', 'Records that wait for a reconcile pass or are in one', { labels: ['kind'] }),
  quarantined: gauge('svc_reconcile_quarantined', 'Records that failed and wait for another try', { labels: ['kind'] }),
  hookRuns: counter('svc_hook_runs', 'Runs of hooks', { labels: ['event', 'source', 'outcome'] }),
  hookSeconds: histogram('svc_hook_run_duration_seconds', 'Duration of hook runs', {
    labels: ['event'],
    bounds: [0.001, 0.01, 0.1, 1, 10],
  }),
  sessions: gauge('svc_sessions', 'Sessions that are not stopped, by state', { labels: ['state'] }),
  turns: counter('svc_turns', 'Turns of agents that ended', { labels: ['outcome'] }),
  turnSeconds: histogram('svc_turn_duration_seconds', 'Duration of agent turns', {
    bounds: [1, 5, 15, 60, 300, 1800],
  }),
  turnsRunning: gauge('svc_turns_running', 'Agent turns in progress'),
  taskRuns: gauge('svc_task_runs', 'Stored task runs, by status', { labels: ['status'] }),
  taskRunsEnded: counter('svc_task_runs_ended', 'Runs of tasks that ended', { labels: ['outcome'] }),
  leases: gauge('svc_task_leases', 'Task runs leased by a session'),
  leasesExpired: counter('svc_task_leases_expired', 'Leases of runs of tasks that expired'),
  automationRuns: counter('svc_automation_runs', 'Runs of jobs and triggers that ended', {
    labels: ['source', 'outcome'],
  }),
  triggerFires: counter('svc_trigger_deliveries', 'Runs created by triggers'),
  bridgeInstances: gauge('svc_bridge_instances', 'Bridges, by status', { labels: ['status'] }),
  bridgeBacklog: gauge('svc_bridge_backlog', 'Messages that wait to be delivered by bridges'),
  bridgeDeliveries: counter('svc_bridge_deliveries', 'Outbound messages of bridges, by result', {
    labels: ['outcome'],
  }),
  databaseBytes: gauge('svc_database_bytes', 'Size of the database'),
  databaseLogBytes: gauge('svc_database_log_bytes', 'Size of the write-ahead log of the database'),
  transactions: counter('svc_database_transactions', 'Transactions of the database'),
  syncs: counter('svc_database_syncs', 'Number of database syncs to disk'),
  loopDelay: gauge('svc_event_loop_delay_seconds', 'Event loop delay since the metrics were last read', {
    labels: ['stat'],
  }),
  loopActive: counter('svc_event_loop_active_seconds', 'Busy time of the event loop'),
  cpu: counter('process_cpu_seconds', 'Processor time of the daemon'),
  resident: gauge('process_resident_memory_bytes', 'Memory of the daemon'),
  heap: gauge('svc_heap_bytes', 'Memory of JavaScript values', { labels: ['part'] }),
  descriptors: gauge('process_open_fds', 'Open file descriptors of the daemon (Linux)'),
  started: gauge('process_start_time_seconds', 'When the daemon started, in seconds since 1970'),
  collectFailures: counter('svc_telemetry_collect_failures', 'Metrics omitted because reading them failed', {
    labels: ['plugin'],
  }),
  spans: counter('svc_telemetry_spans', 'Trace spans, by result', { labels: ['outcome'] }),
} as const satisfies Readonly<Record<string, MetricDeclaration>>
