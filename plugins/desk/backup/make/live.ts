import fs from 'node:fs/promises'
import path from 'node:path'
import { messageOf } from '../../../../kernel/plugin.js'
import type { BackupKind } from '../../../../schemas/daemon/backup.js'
import { copiedUnchanged, holdingCheckpoints } from '../../daemon/api.js'
import { BackupErrors } from '../api.js'
import { schemaDigest } from '../archive/manifest.js'
import type { K } from '../needs.js'
import { contentsOf } from './contents.js'
import { homeIdOf, migrationsOf, rowCounts } from './rows.js'
import type { Material } from './write-backup.js'

/** Longest time that transactions wait while the files of the home are listed. */
const LOOK_MS = 10_000

export interface LiveOptions {
  readonly kind: BackupKind
  readonly withVaultKey: boolean
  readonly backups: string
  /** Folder in the home for copies of files until the backup is written. */
  readonly staging: string
}

/**
 * A snapshot of a running daemon's home. Transactions wait while its files are listed (0.1 s for 10,000 sessions). They continue
 * while the database file is copied: with checkpoints held, new writes stay in its log and the file does not change.
 * @throws Fault `backup_busy` after a checkpoint during the copy
 */
export async function liveMaterial(kernel: K, options: LiveOptions): Promise<Material> {
  const { host } = kernel.needs
  await fs.mkdir(options.staging, { recursive: true, mode: 0o700 })
  const pause = new Pause(kernel)
  try {
    return await holdingCheckpoints(host, async () => {
      await host.checkpoint()
      const looked = await collectMaterial(kernel, options)
      pause.end()
      if (!(await copiedUnchanged(kernel.home.database, looked.database)))
        throw BackupErrors.backup_busy('the database was checkpointed meanwhile; try again')
      return looked
    })
  } finally {
    pause.end()
  }
}

/** Holds all transactions until it ends. */
class Pause {
  readonly #over: Promise<void>
  #release: () => void = () => {}
  readonly #timer
  #isLate = false
  #isEnded = false

  constructor({ needs: { host }, clock }: Pick<K, 'needs' | 'clock'>) {
    this.#over = new Promise<void>(resolve => {
      this.#release = resolve
    })
    host.hold({ has: () => true }, this.#over)
    this.#timer = clock.timeout(LOOK_MS, () => {
      this.#isLate = true
      this.#release()
    })
  }

  /** @throws Fault `backup_failed` if transactions resumed earlier, after the time limit */
  end(): void {
    if (this.#isEnded) return
    this.#isEnded = true
    this.#timer.cancel()
    this.#release()
    if (this.#isLate)
      throw BackupErrors.backup_failed(`the files of the home could not be looked at within ${LOOK_MS / 1000} s`)
  }
}

async function collectMaterial({ db, clock, home, needs }: K, options: LiveOptions): Promise<Material> {
  const { kind, withVaultKey, backups, staging } = options
  let kept = 0
  const keep = async (file: string): Promise<string> => {
    const link = path.join(staging, String(++kept))
    await fs.link(file, link)
    return link
  }
  const contents = await contentsOf(home.root, { withVaultKey, backups, keep })
  const migrations = migrationsOf(db)
  const tables = await rowCounts(db)
  const about = { product_version: needs.host.version, home_id: homeIdOf(db), schema: schemaDigest(migrations) }
  return {
    header: { kind, created_at: clock.now(), ...about },
    contents,
    database: path.join(staging, 'svc.db'),
    migrations,
    tables,
    vaultKey: contents.files.some(file => file.path === 'vault.key'),
  }
}

/** Removes the staging folders of backups that a killed daemon was making. */
export async function removeStaging(cache: string, log: (text: string) => void): Promise<void> {
  const names = await fs.readdir(cache).catch(() => [] as string[])
  for (const name of names.filter(name => name.startsWith('backup-')))
    await fs.rm(path.join(cache, name), { recursive: true, force: true }).catch(error => log(messageOf(error)))
}
