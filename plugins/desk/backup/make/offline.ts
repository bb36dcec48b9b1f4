import fs from 'node:fs/promises'
import path from 'node:path'
import { command, placeholder } from '../../../../kernel/kit/commands/command-line.js'
import { acquireLock, openStore } from '../../../../kernel/platform.js'
import { type Clock, Fault } from '../../../../kernel/plugin.js'
import type { BackupKind } from '../../../../schemas/daemon/backup.js'
import { schemaDigest } from '../archive/manifest.js'
import { STAGED } from '../folder.js'
import { contentsOf } from './contents.js'
import { homeIdOf, migrationsOf, rowCounts } from './rows.js'
import type { Material } from './write-backup.js'

export interface OfflineOptions {
  readonly home: string
  readonly kind: BackupKind
  readonly version: string
  readonly withVaultKey: boolean
  readonly backups: string
  /** Absolute path of the backup, or of its folder; default: the folder of backups. */
  readonly output?: string | undefined
  readonly clock: Clock
}

/**
 * Runs `use` on the home of a stopped daemon, under its lock. The lock of the folder needs no write, and excludes a daemon that uses
 * the same folder through a writable mount. @throws Fault `home_not_found`, `daemon_already_running`, `lock_failed`
 */
export async function withOfflineMaterial<T>(
  options: OfflineOptions,
  use: (material: Material) => Promise<T>,
): Promise<T> {
  const { home, clock } = options
  if (!(await isThere(path.join(home, 'svc.db'))))
    throw new Fault('home_not_found', 404, `there is no database in ${home}`, { next: command('daemon start') })
  const lock = await acquireLock(home, clock)
  try {
    // Where locks do not reach, the owner is the one that wrote its name into the home last.
    if (lock.weakness !== undefined && !(await isWritable(home))) {
      const text = `${home} cannot be written, and no lock excludes a daemon that uses it elsewhere: ${lock.weakness}`
      throw new Fault('lock_failed', 500, text, { next: 'make the backup where the home can be written' })
    }
    return await withLockedMaterial(options, use)
  } finally {
    await lock.release()
  }
}

/** {@link withOfflineMaterial} for a caller that holds the lock. Opens a copy of the database, so the home does not change. */
export async function withLockedMaterial<T>(
  { home, kind, version, withVaultKey, backups, output = backups, clock }: OfflineOptions,
  use: (material: Material) => Promise<T>,
): Promise<T> {
  const staging = await fs.mkdtemp(await stagingPrefix(home, output))
  const database = path.join(staging, 'svc.db')
  try {
    for (const suffix of SUFFIXES)
      await fs
        .copyFile(path.join(home, `svc.db${suffix}`), `${database}${suffix}`, fs.constants.COPYFILE_FICLONE)
        .catch(unlessGone)
    const store = await openStore({ path: database, now: () => clock.now() })
    let read: Pick<Material, 'migrations' | 'tables'> & { readonly id: string }
    try {
      read = { migrations: migrationsOf(store.db), tables: await rowCounts(store.db), id: homeIdOf(store.db) }
    } finally {
      await store.close()
    }
    const { migrations, tables, id } = read
    const contents = await contentsOf(home, { withVaultKey, backups })
    const about = { product_version: version, home_id: id, schema: schemaDigest(migrations) }
    return await use({
      header: { kind, created_at: clock.now(), ...about },
      contents,
      database,
      migrations,
      tables,
      vaultKey: contents.files.some(file => file.path === 'vault.key'),
    })
  } finally {
    await fs.rm(staging, { recursive: true, force: true })
  }
}

const SUFFIXES = ['', '-wal', '-mark', '-journal']
/** Free bytes that opening the copy may need beyond twice its size. */
const SPARE_BYTES = 2 ** 20

/** Where the database is copied: in the home, or beside the backup if the home cannot be written or its disk is full. */
async function stagingPrefix(home: string, output: string): Promise<string> {
  const sizes = await Promise.all(SUFFIXES.map(suffix => sizeOf(path.join(home, `svc.db${suffix}`))))
  const needed = 2 * sizes.reduce((sum, size) => sum + size, 0) + SPARE_BYTES
  const lacks = async (folder: string) => {
    if (!(await isWritable(folder))) return { isFull: false, why: `${folder} cannot be written` }
    if ((await freeIn(folder)) >= needed) return undefined
    return { isFull: true, why: `${folder} has less than ${Math.ceil(needed / 2 ** 20)} MiB free` }
  }
  const atHome = await lacks(home)
  if (atHome === undefined) {
    const cache = path.join(home, 'cache')
    await fs.mkdir(cache, { recursive: true, mode: 0o700 })
    return path.join(cache, 'backup-')
  }
  const isFolder = (await fs.stat(output).catch(() => undefined))?.isDirectory()
  const beside = isFolder ? output : path.dirname(output)
  const there = await lacks(beside)
  if (there === undefined) return path.join(beside, STAGED)
  const why = [...new Set([atHome.why, there.why])].join(', and ')
  const text = `the backup was not made: a copy of the database is needed, and ${why}`
  const next = command('backup create', '--to', placeholder('folder'))
  if (atHome.isFull || there.isFull) throw new Fault('disk_full', 507, text, { next })
  throw new Fault('home_unwritable', 500, text, { next })
}

/** False also for a read-only file system and for a missing folder. */
const isWritable = (folder: string): Promise<boolean> =>
  fs.access(folder, fs.constants.W_OK).then(
    () => true,
    () => false,
  )

const sizeOf = async (file: string): Promise<number> => (await fs.stat(file).catch(() => undefined))?.size ?? 0

async function freeIn(folder: string): Promise<number> {
  const found = await fs.statfs(folder).catch(() => undefined)
  return found === undefined ? 0 : found.bavail * found.bsize
}

const isThere = (file: string): Promise<boolean> =>
  fs.stat(file).then(
    () => true,
    () => false,
  )

function unlessGone(error: NodeJS.ErrnoException): void {
  if (error.code !== 'ENOENT') throw error
}
