import fs from 'node:fs/promises'
import path from 'node:path'
import { command } from '../../../../kernel/kit/commands/command-line.js'
import { jsonFile } from '../../../../kernel/kit/json-file.js'
import { acquireLock, isFull, openStore, systemDisk } from '../../../../kernel/platform.js'
import { type Clock, type Db, Fault, iso, messageOf } from '../../../../kernel/plugin.js'
import { HeldHome } from '../../../../schemas/daemon/backup.js'
import { HOLD_FILE } from '../../daemon/api.js'
import { BackupErrors } from '../api.js'
import { readBackup, type Take } from '../archive/read.js'
import { RESTORING_FILE, Restoring } from '../home/marks.js'
import { tablesOf } from '../make/rows.js'
import { type Verified, type VerifyOptions, verifyBackup } from './verify.js'

export interface RestoreOptions extends VerifyOptions {
  /** Absolute path of the folder that becomes the home. */
  readonly home: string
  readonly clock: Clock
  readonly progress?: (text: string) => void
}

/** The only file in a home that was locked but never used. */
const LOCK_FILE = 'daemon.lock'

/** State that a copy must not continue with, by table: processes and leases belong to the original home. */
const ENDED: Readonly<Record<string, string>> = {
  kernel_process: 'DELETE FROM kernel_process',
  // The next start gives the home a new id and its own cgroup.
  kernel_meta: "DELETE FROM kernel_meta WHERE key IN ('home_id', 'cgroup')",
  tasks_run: 'UPDATE tasks_run SET lease_until = 1 WHERE lease_until > 1',
  sessions_session:
    'UPDATE sessions_session SET attached_to = NULL, attach_expires_at = NULL WHERE attached_to IS NOT NULL',
}

/**
 * Restores a backup into a new home. The backup is checked first. A mark then flags the home as incomplete until all files and the
 * hold mark are on disk: a kill at any moment leaves no home, or one that no daemon starts.
 * @throws Fault `home_not_fresh`, `restore_failed`, `disk_full`, those of `verifyBackup`
 */
export async function restoreBackup(options: RestoreOptions): Promise<Verified> {
  const { file, home, opening, clock, signal, progress } = options
  await checkFresh(home)
  progress?.('checking the backup')
  const verified = await verifyBackup(options)
  try {
    await fs.mkdir(home, { recursive: true, mode: 0o700 })
    await fs.chmod(home, 0o700)
    const lock = await acquireLock(home, clock)
    try {
      await checkFresh(home)
      await jsonFile(path.join(home, RESTORING_FILE), Restoring, null).write({ from: file })
      await clear(home)
      progress?.('restoring the files')
      const manifest = await readBackup({ file, opening, ...writerInto(home), signal })
      if (manifest.schema !== verified.manifest.schema || manifest.created_at !== verified.manifest.created_at)
        throw BackupErrors.restore_failed(`${file} was changed while it was restored`)
      progress?.('ending leases')
      await endWhatRan(path.join(home, 'svc.db'), clock)
      await syncAll(
        home,
        manifest.files.map(({ path: at }) => at),
        manifest.folders,
      )
      await jsonFile(path.join(home, HOLD_FILE), HeldHome, null).write({
        restored_at: iso(clock.now()),
        backup: path.basename(file),
        backup_created_at: iso(manifest.created_at),
      })
      await fs.rm(path.join(home, RESTORING_FILE))
      await systemDisk().fsyncDir(home)
    } finally {
      await lock.release()
    }
    return verified
  } catch (error) {
    if (error instanceof Fault || (error as Error).name === 'AbortError') throw error
    const next = command('backup restore', file, '--home', home)
    if (isFull(error))
      throw new Fault(
        'disk_full',
        507,
        `there is not enough disk space for the home in ${home}; free space and restore again`,
        {
          next,
        },
      )
    throw BackupErrors.restore_failed(`the backup was not restored: ${messageOf(error)}`, { next, cause: error })
  }
}

/** Accepts an empty folder or the remains of an unfinished restore, so that no other file is overwritten. */
async function checkFresh(home: string): Promise<void> {
  const names = await fs.readdir(home).catch((error: NodeJS.ErrnoException): string[] => {
    if (error.code === 'ENOENT') return []
    throw BackupErrors.home_not_fresh(`${home} cannot be used: ${messageOf(error)}`)
  })
  if (names.includes(RESTORING_FILE)) return
  const other = names.find(name => name !== LOCK_FILE)
  if (other !== undefined)
    throw BackupErrors.home_not_fresh(
      `${home} is not empty: it has ${other}. A backup can be restored only into a new or empty home`,
    )
}

async function clear(home: string): Promise<void> {
  for (const name of await fs.readdir(home))
    if (name !== RESTORING_FILE && name !== LOCK_FILE)
      await fs.rm(path.join(home, name), { recursive: true, force: true })
}

function writerInto(home: string) {
  const made = new Set<string>([home])
  const folder = async (at: string): Promise<void> => {
    const whole = path.join(home, at)
    if (made.has(whole)) return
    await fs.mkdir(whole, { recursive: true, mode: 0o700 })
    made.add(whole)
  }
  const take: Take = async ({ path: at, mode }, bytes) => {
    const parent = path.dirname(at)
    if (parent !== '.') await folder(parent)
    // Exclusive creation: an entry cannot follow a link or replace a file that an earlier entry created.
    const handle = await fs.open(path.join(home, at), 'wx', (mode & 0o700) | 0o600)
    try {
      for await (const piece of bytes) await handle.writeFile(piece)
    } finally {
      await handle.close()
    }
  }
  return { take, folder }
}

/** Ends the original's processes and leases in the copy, so that the copy does not continue them. */
async function endWhatRan(database: string, clock: Clock): Promise<void> {
  const store = await openStore({ path: database, now: () => clock.now() })
  try {
    const db: Db = store.db
    const there = tablesOf(db)
    await db.tx(t => {
      for (const [table, sql] of Object.entries(ENDED)) if (there.includes(table)) t.run(sql)
    })
  } finally {
    await store.close()
  }
}

async function syncAll(home: string, files: readonly string[], folders: readonly string[]): Promise<void> {
  for (const at of files) await syncFile(path.join(home, at))
  for (const at of folders) await systemDisk().fsyncDir(path.join(home, at))
  await systemDisk().fsyncDir(home)
}

async function syncFile(file: string): Promise<void> {
  const handle = await fs.open(file, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}
