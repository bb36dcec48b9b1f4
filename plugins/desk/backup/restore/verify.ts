import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { isDropIn, isFull, openStore } from '../../../../kernel/platform.js'
import { Fault, messageOf, systemClock } from '../../../../kernel/plugin.js'
import { BackupErrors } from '../api.js'
import type { Manifest } from '../archive/manifest.js'
import { readBackup, type Take } from '../archive/read.js'
import type { Opening } from '../archive/seal.js'
import { tablesOf } from '../make/rows.js'

/** Whether this program knows a migration, by the SHA-256 of its text. */
export type Knows = (hash: string) => boolean

export interface VerifyOptions {
  readonly file: string
  readonly opening: Opening
  readonly knows: Knows
  readonly signal?: AbortSignal | undefined
}

export interface Verified {
  readonly manifest: Manifest
  /** References of secrets that cannot be decrypted because the backup lacks their key. */
  readonly lockedSecrets: readonly string[]
}

/**
 * Checks a whole backup: the hash of every file, the schema, the integrity of the database (by SQLite), and the row count of each
 * table.
 * @throws Fault those of `readBackup`; `backup_damaged`, `backup_newer`
 */
export async function verifyBackup({ file, opening, knows, signal }: VerifyOptions): Promise<Verified> {
  const folder = await fs.mkdtemp(path.join(os.tmpdir(), 'svc-backup-'))
  try {
    const database = path.join(folder, 'svc.db')
    const take: Take = async (entry, bytes) => {
      if (entry.path === 'svc.db') await fs.writeFile(database, bytes, { mode: 0o600, flag: 'wx' })
    }
    const manifest = await readBackup({ file, opening, take, signal })
    const unknown = manifest.migrations.find(([owner, id, hash]) => !isDropIn(owner) && /^\d/.test(id) && !knows(hash))
    if (unknown)
      throw BackupErrors.backup_newer(
        `${path.basename(file)} was made by a later version: its database has migration ${unknown[1]} of ${unknown[0]}, which is unknown here`,
      )
    return { manifest, lockedSecrets: await checkDatabase(database, manifest, path.basename(file)) }
  } catch (error) {
    if (!isFull(error)) throw error
    throw new Fault(
      'disk_full',
      507,
      `there is not enough disk space in ${os.tmpdir()} to check the database of ${file}`,
      {
        next: 'free space, or name another folder with TMPDIR',
        cause: error,
      },
    )
  } finally {
    await fs.rm(folder, { recursive: true, force: true })
  }
}

/** @returns secrets sealed with a key that the backup lacks */
async function checkDatabase(database: string, manifest: Manifest, name: string): Promise<string[]> {
  const damaged = (why: string) => BackupErrors.backup_damaged(`${name} is damaged: ${why}`)
  try {
    const store = await openStore({ path: database, now: () => systemClock().now() })
    try {
      for (const [text] of store.db.rows('SELECT * FROM pragma_integrity_check'))
        if (text !== 'ok') throw damaged(`its database: ${text}`)
      for (const [table, , parent] of store.db.rows('SELECT * FROM pragma_foreign_key_check LIMIT 1'))
        throw damaged(`a row of ${table} refers to a row of ${parent} that does not exist`)
      const tables = tablesOf(store.db)
      for (const table of tables) {
        const rows = Number(store.db.row(`SELECT count(*) FROM "${table.replaceAll('"', '""')}"`)?.[0])
        if (manifest.tables[table] !== rows)
          throw damaged(`its table ${table} has ${rows} rows instead of ${manifest.tables[table] ?? 'none'}`)
      }
      const missing = Object.keys(manifest.tables).find(table => !tables.includes(table))
      if (missing !== undefined) throw damaged(`its table ${missing} is missing`)
      if (manifest.vault_key || !tables.includes('vault_secret')) return []
      return store.db.rows('SELECT ref FROM vault_secret ORDER BY ref').map(([ref]) => String(ref))
    } finally {
      await store.close()
    }
  } catch (error) {
    throw error instanceof Fault ? error : damaged(`its database cannot be opened: ${messageOf(error)}`)
  }
}
