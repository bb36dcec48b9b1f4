import { createHash } from 'node:crypto'
import fs from 'node:fs/promises'
import path from 'node:path'
import { command, placeholder } from '../../../../kernel/kit/commands/command-line.js'
import {
  acquireLock,
  isDropIn,
  type PluginInfo,
  StoreError,
  type StoreStatus,
  systemDisk,
} from '../../../../kernel/platform.js'
import { type Clock, type Fault, messageOf } from '../../../../kernel/plugin.js'
import { BackupErrors } from '../api.js'
import type { Take } from '../archive/read.js'
import { guardHome, readMark, writeMark } from './guard.js'

/** The identity of a migration. */
type Step = { readonly id: string; readonly sql: string }

export interface UpgradeOptions {
  readonly home: string
  readonly version: string
  /** Migrations of the program by owner. */
  readonly schema: readonly (readonly [owner: string, steps: readonly Step[]])[]
  readonly clock: Clock
  /** A random id. */
  readonly id: () => string
  /** The folder of this home's backups, and how many are kept there. */
  readonly folder: string
  readonly keep: number
  readonly log: (level: 'info' | 'warn' | 'error', text: string) => void
}

/** The part of a started kernel that the upgrade uses. */
export interface Started {
  readonly host: { plugins(): readonly PluginInfo[]; store(): StoreStatus }
  close(): Promise<readonly Error[]>
}

/** Errors of a failed start: a migration of the kernel, or a required plugin. */
const FAILED = /\b(migration_refused|sql_failed|constraint_failed)\b|the required plugin \S+ did not start/

/**
 * Starts a kernel on a home. Before the first start with another schema, it makes a backup. If a migration fails, the database is
 * restored from it and the start is refused.
 * @param start starts the kernel; calls its argument as soon as the home is locked
 * @throws Fault `home_copied`, `restore_unfinished`, `upgrade_failed`
 */
export async function startUpgraded<T extends Started>(
  options: UpgradeOptions,
  start: (locked: () => Promise<void>) => Promise<T>,
): Promise<T> {
  const { version } = options
  const schema = digestOf(options.schema)
  let backup: string | undefined
  let isNew = false
  const locked = async () => {
    const home = await fs.realpath(options.home)
    guardHome(home)
    const mark = readMark(home)
    isNew = mark?.schema !== schema
    if (isNew && (await hasData(home))) backup = await backUp(options)
    if (mark?.path !== home) writeMark(home, { ...(mark ?? { id: options.id() }), path: home })
  }
  let kernel: T
  try {
    kernel = await start(locked)
  } catch (error) {
    const ahead = aheadOf(error, options)
    if (ahead || backup === undefined || !FAILED.test(textOf(error))) throw ahead ?? error
    throw await undone(options, backup, messageOf(error))
  }
  const failed = isNew ? failedUpgrade(kernel) : undefined
  if (backup !== undefined && failed?.state.status === 'failed') {
    await kernel.close()
    throw await undone(options, backup, `${failed.name}: ${failed.state.error}`)
  }
  const home = await fs.realpath(options.home)
  const mark = readMark(home)
  const isOther = isNew || mark?.product_version !== version
  // The list of all plugins takes a while, and a plugin is behind its tables only after another version.
  const ahead =
    isOther && kernel.host.plugins().find(({ state }) => state.status === 'failed' && AHEAD.test(state.error))
  if (ahead && mark?.product_version !== undefined)
    options.log('error', `${ahead.name} cannot read its tables; svc ${mark.product_version} ran this home last`)
  else if (mark && failed === undefined && isOther) writeMark(home, { ...mark, schema, product_version: version })
  return kernel
}

const AHEAD = /\bschema_ahead\b|\bthe database has migration\b/

/** The refusal of a database with a newer schema, with the version of the program that wrote it; undefined for other errors. */
function aheadOf(error: unknown, { home, version }: UpgradeOptions): StoreError | undefined {
  const by = readMark(home)?.product_version
  if (by === undefined || !AHEAD.test(textOf(error))) return undefined
  const writer = by === version ? `another build of svc ${by}` : `svc ${by}`
  const message = `${messageOf(error)}; ${writer} ran this home last, and this is svc ${version}`
  const hint = `start ${writer}, or restore a backup from before: svc backup list`
  return new StoreError('schema_ahead', message, hint, error)
}

/** A built-in plugin that failed before all its migrations were applied. */
function failedUpgrade({ host }: Started): PluginInfo | undefined {
  const behind = host.store().streams.flatMap(({ owner, version, applied }) => (applied < version ? owner : []))
  return host.plugins().find(({ name, state }) => state.status === 'failed' && !isDropIn(name) && behind.includes(name))
}

/** The text of an error and its causes. */
function textOf(error: unknown): string {
  const { code = '', message = '', cause } = (error ?? {}) as { code?: string; message?: string; cause?: unknown }
  return `${code} ${message}${cause === undefined ? '' : ` ${textOf(cause)}`}`
}

function digestOf(schema: UpgradeOptions['schema']): string {
  const hash = createHash('sha256')
  for (const [owner, steps] of schema) for (const { id, sql } of steps) hash.update(`${owner}\0${id}\0${sql}\0`)
  return hash.digest('hex')
}

async function hasData(home: string): Promise<boolean> {
  const found = await fs.stat(path.join(home, 'svc.db')).catch(() => undefined)
  return (found?.size ?? 0) > 0
}

/** Makes a backup and returns its path; undefined on failure, which does not prevent the start. */
async function backUp({ home, version, clock, folder, keep, log }: UpgradeOptions): Promise<string | undefined> {
  const kind = 'upgrade'
  try {
    const [{ withLockedMaterial }, { putBackup }] = await Promise.all([
      import('../make/offline.js'),
      import('../make/into-folder.js'),
    ])
    return await withLockedMaterial(
      { home, kind, version, withVaultKey: false, backups: folder, clock },
      async material => {
        const { signal } = new AbortController()
        const made = await putBackup(material, { folder, keep, kind, sealing: { to: [] }, signal, clock })
        const output = made.backup.path
        log('info', `this version changes the database schema: the home was backed up to ${output}`)
        return output
      },
    )
  } catch (error) {
    log('error', `the home was not backed up before it is migrated: ${messageOf(error)}`)
    return undefined
  }
}

async function undone({ home, clock, log }: UpgradeOptions, backup: string, why: string): Promise<Fault> {
  const next = 'start the previous version of svc'
  try {
    await putBack(home, backup, clock)
  } catch (error) {
    log('error', `the previous database was not restored: ${messageOf(error)}`)
    return BackupErrors.upgrade_failed(
      `the upgrade failed, and the previous database was not restored (${messageOf(error)}): ${why}. It is in ${backup}`,
      { next: command('backup restore', backup, '--home', placeholder('folder')) },
    )
  }
  return BackupErrors.upgrade_failed(
    `the upgrade failed: ${why}. The database is unchanged; a backup of the home is in ${backup}`,
    { next },
  )
}

/** Replaces the database of the home by the one in a backup. */
export async function putBack(home: string, backup: string, clock: Clock): Promise<void> {
  const { readBackup } = await import('../archive/read.js')
  const lock = await acquireLock(home, clock)
  const before = path.join(home, '.svc.db.before.tmp')
  try {
    await fs.rm(before, { force: true })
    const take: Take = async (file, bytes) => {
      if (file.path === 'svc.db') await fs.writeFile(before, bytes, { mode: 0o600, flag: 'wx', flush: true })
    }
    await readBackup({ file: backup, opening: { identities: [] }, take })
    // The remaining log belongs to the replaced database. The file from the backup is complete without a log.
    for (const suffix of ['-wal', '-mark']) await fs.rm(path.join(home, `svc.db${suffix}`), { force: true })
    await fs.rename(before, path.join(home, 'svc.db'))
    await systemDisk().fsyncDir(home)
  } finally {
    await fs.rm(before, { force: true }).catch(() => {})
    await lock.release()
  }
}
