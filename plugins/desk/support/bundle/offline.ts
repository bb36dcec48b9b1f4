import { randomBytes } from 'node:crypto'
import { readdir, stat, statfs } from 'node:fs/promises'
import path from 'node:path'
import { command } from '../../../../kernel/kit/commands/command-line.js'
import { readRegularFile } from '../../../../kernel/kit/read-file.js'
import { iso, messageOf, type Reads, systemClock } from '../../../../kernel/plugin.js'
import { readJson } from '../../../platform/configuration/api.js'
import { withDatabaseCopy } from '../../daemon/api.js'
import { Limits } from '../limits.js'
import { Scrubber } from '../redact/scrubber.js'
import { readSecretFiles } from '../redact/secret-files.js'
import { type Bundle, buildBundle, type Source } from './build.js'
import type { Content } from './content.js'
import { homeTree, logTail, readConfig } from './files.js'
import { readLiveness } from './liveness.js'
import { applyRecords, eventSummaries, sessionRows } from './tables.js'
import { machineOf } from './versions.js'

/** Largest database that is copied. */
const MOST_DATABASE_BYTES = 1024 ** 3
const LOW_BYTES = 256 * 1024 * 1024

export interface OfflineRequest {
  readonly home: string
  /** Version of the command line. */
  readonly version: string
  readonly env: Readonly<Record<string, string | undefined>>
  readonly includeStatus: boolean
  /** Why the bundle is made without the daemon. */
  readonly why: string
  readonly signal: AbortSignal
}

interface Finding {
  readonly id: string
  readonly severity: 'info' | 'warning' | 'error'
  readonly code: string
  readonly message: string
  readonly suggested_command?: string
}

/** Makes a bundle from the files of a home, whether or not its daemon runs. Does not write to the home. */
export async function makeOfflineBundle(request: OfflineRequest): Promise<Bundle & { readonly name: string }> {
  const { home, env, signal, why, version } = request
  const at = systemClock().now()
  const scrubber = new Scrubber(undefined)
  scrubber.hideEnvironment(env)
  await readSecretFiles(home, scrubber)
  await readConfig(home, scrubber).catch(() => {})
  const operationId = `sup_${randomBytes(8).toString('hex')}`
  const build = (db: Reads | string) =>
    buildBundle({
      operationId,
      at,
      sources: sourcesOf(request, db, scrubber),
      scrubber,
      signal,
      about: `Read from the files of ${home} by svc ${version}, without its daemon: ${why}.`,
    })
  const bundle = await withDatabase(home, build)
  return { ...bundle, name: `svc-support-${iso(at).replace(/[-:]|\.\d+/g, '')}-${operationId}.tar.gz` }
}

/** Calls `use` with a copy of the database, or with the reason why there is none. */
async function withDatabase<T>(home: string, use: (db: Reads | string) => Promise<T>): Promise<T> {
  const size = await stat(path.join(home, 'svc.db')).then(
    ({ size }) => size,
    () => undefined,
  )
  if (size === undefined) return use('there is no database')
  if (size > MOST_DATABASE_BYTES) return use(`the database has ${size} bytes, too many to copy`)
  let isOpen = false
  try {
    return await withDatabaseCopy(home, db => {
      isOpen = true
      return use(db)
    })
  } catch (error) {
    if (isOpen) throw error
    return use(`the database cannot be opened: ${messageOf(error)}`)
  }
}

function sourcesOf(request: OfflineRequest, db: Reads | string, scrubber: Scrubber): Source[] {
  const { home, includeStatus, version } = request
  const json = async (value: unknown): Promise<Content> => ({ kind: 'json', value: await value })
  const table = (file: string, read: (db: Reads) => Content | Promise<Content>, max?: number): Source => ({
    path: file,
    ...(max === undefined ? {} : { max }),
    ...(typeof db === 'string' ? { omitted: db } : {}),
    read: async () => read(db as Reads),
  })
  return [
    { path: 'doctor.json', read: () => json(doctorOf(request, db)) },
    {
      path: 'status.json',
      ...(includeStatus ? {} : { omitted: '--no-status was given' }),
      read: () => json(statusOf(request)),
    },
    { path: 'providers.json', omitted: 'the list of providers needs a running daemon', read: () => json({}) },
    table('config-apply-records.json', applyRecords),
    table('event-summaries.json', eventSummaries, Limits.events),
    table('sessions.json', sessionRows),
    { path: 'config-redacted.json', read: () => json(readConfig(home, scrubber)) },
    { path: 'logs-tail.txt', max: Limits.logTail, read: () => logTail(home, scrubber) },
    { path: 'versions.json', read: () => json({ svc: { version, note: 'of the command line' }, ...machineOf() }) },
    { path: 'home-tree.json', read: () => homeTree(home) },
    {
      path: 'liveness.json',
      read: async () => ({
        kind: 'list',
        head: { order: 'oldest first' },
        member: 'samples',
        items: await readLiveness(home),
        more: false,
      }),
    },
  ]
}

/** The content of the daemon's discovery file, and why the daemon does not answer. */
async function statusOf({ home, why }: OfflineRequest): Promise<unknown> {
  const text = await readRegularFile(path.join(home, 'daemon.json'), { maxBytes: 64 * 1024 }).catch(() => undefined)
  const discovery = text === undefined ? undefined : readJson(text.toString(), 'daemon.json')
  return { daemon: { status: 'not answering', why, discovery: discovery ?? 'there is no daemon.json' } }
}

/** Problems that can be detected without a daemon. */
async function doctorOf({ home, why }: OfflineRequest, db: Reads | string): Promise<unknown> {
  const items: Finding[] = [
    {
      id: 'daemon',
      severity: 'error',
      code: 'daemon_not_answering',
      message: why,
      suggested_command: command('doctor'),
    },
    ...(await homeFindings(home)),
    ...(await configFindings(home)),
    ...(typeof db === 'string'
      ? [
          {
            id: 'store.state',
            severity: 'error',
            code: 'store_unreadable',
            message: db,
            suggested_command: command('db verify'),
          } as const,
        ]
      : []),
  ]
  return { offline: true, items }
}

async function homeFindings(home: string): Promise<Finding[]> {
  const found: Finding[] = []
  const about = await stat(home).catch(() => undefined)
  if (!about)
    return [{ id: 'home.path', severity: 'error', code: 'home_path_missing', message: `${home} does not exist` }]
  if ((about.mode & 0o077) !== 0) {
    const mode = (about.mode & 0o777).toString(8)
    const message = `${home} has mode ${mode}; other users of this machine can reach it`
    found.push({
      id: 'home.permissions',
      severity: 'warning',
      code: 'home_perms_wrong',
      message,
      suggested_command: `chmod 700 ${home}`,
    })
  }
  const disk = await statfs(home).catch(() => undefined)
  if (disk && disk.bavail * disk.bsize < LOW_BYTES) {
    const message = `the disk of ${home} has ${disk.bavail * disk.bsize} free bytes`
    found.push({ id: 'home.disk', severity: 'error', code: 'disk_full', message })
  }
  const crashes = await readdir(path.join(home, 'logs', 'crash-bundles')).catch(() => [])
  if (crashes.length > 0) {
    const message = `${crashes.length} crash reports of agents are in logs/crash-bundles of the home; they are not part of this bundle`
    found.push({ id: 'home.crashes', severity: 'warning', code: 'crash_bundles_found', message })
  }
  return found
}

async function configFindings(home: string): Promise<Finding[]> {
  try {
    const text = await readRegularFile(path.join(home, 'config.json'), { maxBytes: Limits.artifact * 16 })
    if (text) readJson(text.toString(), 'config.json')
    return []
  } catch (error) {
    const message = messageOf(error)
    return [
      {
        id: 'config.settings',
        severity: 'error',
        code: 'config_invalid',
        message,
        suggested_command: command('config check'),
      },
    ]
  }
}
