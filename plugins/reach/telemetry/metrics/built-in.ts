import type { Metric, Sample } from '../api.js'
import type { K } from '../needs.js'
import type { Counts } from './counts.js'
import { declared } from './declared.js'
import { type LoopDelay, used } from './process.js'

type Read = Metric['read']

/** A gauge with one label, from numbers by its value. */
const by = (label: string, values: Readonly<Record<string, number>>): Sample[] =>
  Object.entries(values).map(([name, value]) => ({ labels: { [label]: name }, value }))

const one = (value: number): Sample[] => [{ value }]

/** Counts items by key. */
function countsOf<T>(all: readonly T[], key: (one: T) => string): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const item of all) counts[key(item)] = (counts[key(item)] ?? 0) + 1
  return counts
}

/** The package's metrics: counters, and values requested from their owners when the metrics are read. */
export function builtIn(
  kernel: K,
  counts: Counts,
  { loopDelay, spans }: { readonly loopDelay: LoopDelay; readonly spans: () => Readonly<Record<string, number>> },
): readonly Metric[] {
  const { needs, db, version } = kernel
  const { host, reconcile } = needs
  const store = () => host.store()
  const bridges = () => needs.bridges.current?.totals()
  const reads: Readonly<Record<keyof typeof declared, Read>> = {
    build: () => [{ labels: { version: host.version ?? version, node: process.versions.node }, value: 1 }],
    requests: counts.requests.read,
    requestSeconds: counts.requestSeconds.read,
    streams: () => by('plugin', host.streams()),
    events: counts.events.read,
    plugins: () =>
      by(
        'state',
        countsOf(host.plugins(), ({ state }) => state.status),
      ),
    faults: () => {
      const sums: Record<string, number> = {}
      for (const { owner, count } of host.faults()) sums[owner] = (sums[owner] ?? 0) + count
      return by('plugin', sums)
    },
    passes: counts.passes.read,
    pending: () => reconcile.health().map(({ kind, pending }) => ({ labels: { kind }, value: pending })),
    quarantined: () =>
      reconcile.health().map(({ kind, quarantined }) => ({ labels: { kind }, value: quarantined.length })),
    hookRuns: counts.hookRuns.read,
    hookSeconds: counts.hookSeconds.read,
    sessions: () =>
      by(
        'state',
        countsOf(needs.sessions.current?.unstopped() ?? [], ({ state }) => state),
      ),
    turns: counts.turns.read,
    turnSeconds: counts.turnSeconds.read,
    turnsRunning: () => one(counts.turnsRunning),
    taskRuns: () => {
      if (!needs.tasks.current) return []
      const rows = db.all<{ status: string; n: number }>('SELECT status, count(*) AS n FROM tasks_run GROUP BY status')
      return rows.map(({ status, n }) => ({ labels: { status }, value: n }))
    },
    taskRunsEnded: counts.taskRunsEnded.read,
    leases: () => {
      if (!needs.tasks.current) return []
      const row = db.get<{ n: number }>('SELECT count(*) AS n FROM tasks_run WHERE lease_until IS NOT NULL')
      return one(row?.n ?? 0)
    },
    leasesExpired: counts.leasesExpired.read,
    automationRuns: counts.automationRuns.read,
    triggerFires: counts.triggerFires.read,
    bridgeInstances: () => by('status', bridges()?.status_counts ?? {}),
    bridgeBacklog: () => one(bridges()?.delivery_backlog ?? 0),
    bridgeDeliveries: counts.bridgeDeliveries.read,
    databaseBytes: () => one(store().bytes),
    databaseLogBytes: () => one(store().walBytes),
    transactions: () => one(store().transactions),
    syncs: () => one(store().syncs),
    loopDelay: loopDelay.read,
    loopActive: used.loopActive,
    cpu: used.cpu,
    resident: used.resident,
    heap: used.heap,
    descriptors: used.descriptors,
    started: () => one(host.startedAt / 1000),
    collectFailures: counts.collectFailures.read,
    spans: () => by('outcome', spans()),
  }
  return Object.entries(declared).map(([key, declaration]) => ({
    ...declaration,
    read: reads[key as keyof typeof declared],
  }))
}
