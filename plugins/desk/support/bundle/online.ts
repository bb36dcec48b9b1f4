import { KernelErrors } from '../../../../kernel/plugin.js'
import { Limits } from '../limits.js'
import type { K } from '../needs.js'
import { Scrubber } from '../redact/scrubber.js'
import { readSecretFiles } from '../redact/secret-files.js'
import type { Source } from './build.js'
import type { Content } from './content.js'
import { homeTree, logTail, readConfig } from './files.js'
import { readLiveness } from './liveness.js'
import { applyRecords, eventSummaries, sessionRows } from './tables.js'
import { machineOf } from './versions.js'

/** Most records that are searched for secrets. */
const MOST_RECORDS = 5000
const MB = 1024 * 1024

/** A scrubber with the secrets that this daemon knows. */
export async function scrubberOf({ env, home, records, redact }: K): Promise<Scrubber> {
  const scrubber = new Scrubber(redact)
  scrubber.hideEnvironment(env)
  for (const { spec } of records.list({ limit: MOST_RECORDS })) scrubber.hideMembers(spec)
  await readSecretFiles(home.root, scrubber)
  return scrubber
}

/** The files of a running daemon's bundle. Reading them writes nothing. */
export function sourcesOf(kernel: K, scrubber: Scrubber, includeStatus: boolean): Source[] {
  const { db, home, needs } = kernel
  const { root } = home
  const json = async (value: unknown): Promise<Content> => ({ kind: 'json', value: await value })
  return [
    { path: 'doctor.json', read: signal => json(needs.daemon.reports.doctor({}, signal)) },
    {
      path: 'status.json',
      ...(includeStatus ? {} : { omitted: 'include_status is false' }),
      read: () => json(needs.daemon.reports.status({})),
    },
    { path: 'providers.json', read: () => json(providersOf(kernel)) },
    { path: 'config-apply-records.json', read: async () => applyRecords(db) },
    { path: 'event-summaries.json', max: Limits.events, read: () => eventSummaries(db) },
    { path: 'sessions.json', read: async () => sessionRows(db) },
    { path: 'config-redacted.json', read: () => json(readConfig(root, scrubber)) },
    { path: 'logs-tail.txt', max: Limits.logTail, read: () => logTail(root, scrubber) },
    { path: 'versions.json', read: () => json(versionsOf(kernel)) },
    { path: 'home-tree.json', read: () => homeTree(root) },
    { path: 'liveness.json', read: () => livenessOf(kernel) },
  ]
}

async function providersOf({ needs }: K): Promise<unknown> {
  const providers = needs.providers.current
  if (!providers) throw KernelErrors.unavailable('the plugin providers does not run')
  const rows = providers.list().map(async provider => ({
    name: provider.name,
    display_name: provider.displayName,
    command: provider.argv[0],
    harness: provider.harness,
    auth_mode: provider.authMode,
    env_policy: provider.envPolicy,
    home_policy: provider.homePolicy,
    installed: await providers.detected(provider),
    logged_in: providers.isLoggedIn(provider) ?? 'not checked',
    secret_variables: (provider.slots ?? []).map(({ variable, required }) => ({ variable, required })),
    withheld_variables: providers.withheld(provider),
    preferred: providers.preferred === provider,
  }))
  return { providers: await Promise.all(rows) }
}

function versionsOf({ needs }: K): unknown {
  const { host } = needs
  return {
    svc: { version: host.version, pid: host.pid, started_at: new Date(host.startedAt).toISOString() },
    ...machineOf(),
    plugins: host.plugins().map(({ name, version, state }) => ({ name, version, status: state.status })),
  }
}

async function livenessOf({ home, needs }: K): Promise<Content> {
  const { rss, heapUsed, external } = process.memoryUsage()
  const now = {
    rss_mb: Math.round(rss / MB),
    heap_mb: Math.round(heapUsed / MB),
    external_mb: Math.round(external / MB),
    handles: process.getActiveResourcesInfo().length,
    streams: needs.host.streams(),
  }
  const items = await readLiveness(home.root)
  return { kind: 'list', head: { order: 'oldest first', now }, member: 'samples', items, more: false }
}
