import fs from 'node:fs/promises'
import path from 'node:path'
import { acquireLock } from '../../../../kernel/platform.js'
import { type Clock, Fault, messageOf } from '../../../../kernel/plugin.js'
import { BackupErrors } from '../api.js'
import { beginsAsBackup, lookAt } from '../archive/read.js'
import { ChunkStore } from './store.js'

/** How long one who wants the store waits for another one. */
const WAIT_MS = 2000

/**
 * Work on the store of a folder while no other process adds to it or collects it; the lock goes with the process.
 * @throws Fault `backup_busy`, `backup_output_invalid`
 */
export async function withStore<T>(folder: string, clock: Clock, work: (store: ChunkStore) => Promise<T>): Promise<T> {
  const store = ChunkStore.beside(folder)
  await store.make().catch(error => {
    throw BackupErrors.backup_output_invalid(`the folder ${store.folder} cannot be made: ${messageOf(error)}`)
  })
  const lock = await acquireLock(store.folder, clock, { waitMs: WAIT_MS }).catch(error => {
    if (!(error instanceof Fault) || error.code !== 'daemon_already_running') throw error
    throw BackupErrors.backup_busy(`another backup is being made or deleted in ${folder}; try again when it has ended`)
  })
  try {
    return await work(store)
  } finally {
    await lock.release()
  }
}

export interface Collected {
  readonly freed: number
  /** A backup that cannot be read: what it needs is unknown, so everything was kept. */
  readonly unreadable?: string
}

/**
 * Removes the chunks that no file of the folder needs, whatever it is called. Called with the lock of the store, when the removal of
 * backups is on the disk: so a kill at any moment leaves chunks too many, never too few.
 */
export async function collect(
  folder: string,
  store: ChunkStore,
  isNamedAsBackup: (name: string) => boolean,
): Promise<Collected> {
  const needed = new Set<string>()
  for (const entry of await fs.readdir(folder, { withFileTypes: true })) {
    if (entry.isDirectory()) continue
    const file = path.join(folder, entry.name)
    const found = await lookAt(file)
    if (found?.encrypted === false) for (const name of found.chunks.keys()) needed.add(name)
    else if (!found && (isNamedAsBackup(entry.name) || (await beginsAsBackup(file).catch(() => false))))
      return { freed: 0, unreadable: entry.name }
  }
  return { freed: await store.keepOnly(needed) }
}
