import fs from 'node:fs/promises'
import path from 'node:path'
import { command } from '../../../../kernel/kit/commands/command-line.js'
import { acquireLock, openStore } from '../../../../kernel/platform.js'
import { type Clock, Fault } from '../../../../kernel/plugin.js'
import type { BackupKind } from '../../../../schemas/daemon/backup.js'
import { schemaDigest } from '../archive/manifest.js'
import { contentsOf } from './contents.js'
import { homeIdOf, migrationsOf, rowCounts } from './rows.js'
import type { Material } from './write-backup.js'

export interface OfflineOptions {
  readonly home: string
  readonly kind: BackupKind
  readonly version: string
  readonly withVaultKey: boolean
  readonly backups: string
  readonly clock: Clock
}

/** Runs `use` on the home of a stopped daemon, under its lock. @throws Fault `home_not_found`, `daemon_already_running` */
export async function withOfflineMaterial<T>(
  options: OfflineOptions,
  use: (material: Material) => Promise<T>,
): Promise<T> {
  const { home, clock } = options
  if (!(await isThere(path.join(home, 'svc.db'))))
    throw new Fault('home_not_found', 404, `there is no database in ${home}`, { next: command('daemon start') })
  const lock = await acquireLock(home, clock)
  try {
    return await withLockedMaterial(options, use)
  } finally {
    await lock.release()
  }
}

/** {@link withOfflineMaterial} for a caller that holds the lock. Opens a copy of the database, so the home does not change. */
export async function withLockedMaterial<T>(
  { home, kind, version, withVaultKey, backups, clock }: OfflineOptions,
  use: (material: Material) => Promise<T>,
): Promise<T> {
  const cache = path.join(home, 'cache')
  await fs.mkdir(cache, { recursive: true, mode: 0o700 })
  const staging = await fs.mkdtemp(path.join(cache, 'backup-'))
  const database = path.join(staging, 'svc.db')
  try {
    for (const suffix of ['', '-wal', '-mark', '-journal'])
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

const isThere = (file: string): Promise<boolean> =>
  fs.stat(file).then(
    () => true,
    () => false,
  )

function unlessGone(error: NodeJS.ErrnoException): void {
  if (error.code !== 'ENOENT') throw error
}
