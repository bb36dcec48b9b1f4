import fs from 'node:fs/promises'
import path from 'node:path'
import { messageOf } from '../../../../kernel/plugin.js'
import type { BackupKind } from '../../../../schemas/backup.js'
import { BackupErrors } from '../api.js'
import { FORMAT, schemaDigest } from '../archive/manifest.js'
import type { K } from '../needs.js'
import { contentsOf } from './contents.js'
import { homeIdOf, migrationsOf, rowCounts } from './rows.js'
import type { Material } from './write-backup.js'

/** Writes wait no longer than this for the files of the home to be looked at. */
const LOOK_MS = 10_000

export interface LiveOptions {
  readonly kind: BackupKind
  readonly withVaultKey: boolean
  readonly backups: string
  /** Folder in the home for what is kept until the backup is written. */
  readonly staging: string
}

/**
 * The home of a running daemon as of one moment. Transactions wait while its files are looked at (0.1 s for 10,000 sessions) and go
 * on while the database, which stays as it is, is copied; what is written meanwhile stays in its log.
 */
export async function liveMaterial(
  kernel: K,
  { kind, withVaultKey, backups, staging }: LiveOptions,
): Promise<Material> {
  const { db, clock, home, needs } = kernel
  const database = path.join(staging, 'svc.db')
  await fs.mkdir(staging, { recursive: true, mode: 0o700 })
  return needs.host.still(async goOn => {
    let isLate = false
    const timer = clock.timeout(LOOK_MS, () => {
      isLate = true
      goOn()
    })
    try {
      let kept = 0
      const keep = async (file: string): Promise<string> => {
        const link = path.join(staging, String(++kept))
        await fs.link(file, link)
        return link
      }
      const contents = await contentsOf(home.root, { withVaultKey, backups, keep })
      const migrations = migrationsOf(db)
      const tables = await rowCounts(db)
      const home_id = homeIdOf(db)
      const created_at = clock.now()
      goOn()
      if (isLate)
        throw BackupErrors.backup_failed(`the files of the home could not be looked at within ${LOOK_MS / 1000} s`)
      await fs.copyFile(home.database, database, fs.constants.COPYFILE_FICLONE)
      const product_version = needs.host.version
      const header = {
        format: FORMAT,
        kind,
        created_at,
        product_version,
        home_id,
        schema: schemaDigest(migrations),
      } as const
      const vaultKey = contents.files.some(file => file.path === 'vault.key')
      return { header, contents, database, migrations, tables, vaultKey }
    } finally {
      timer.cancel()
    }
  })
}

/** Removes what is left of backups that were being made when the daemon was killed. */
export async function removeStaging(cache: string, log: (text: string) => void): Promise<void> {
  const names = await fs.readdir(cache).catch(() => [] as string[])
  for (const name of names.filter(name => name.startsWith('backup-')))
    await fs.rm(path.join(cache, name), { recursive: true, force: true }).catch(error => log(messageOf(error)))
}
