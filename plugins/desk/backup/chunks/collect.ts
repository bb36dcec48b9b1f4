import fs from 'node:fs/promises'
import path from 'node:path'
import { acquireLock } from '../../../../kernel/platform.js'
import { type Clock, Fault, messageOf } from '../../../../kernel/plugin.js'
import { BackupErrors } from '../api.js'
import { beginsAsBackup, lookAt } from '../archive/read.js'
import { ChunkStore } from './store.js'

/** Milliseconds to wait for another process that holds the lock of the store. */
const WAIT_MS = 2000

/**
 * Runs `work` while no other process adds chunks to the folder's store or removes them. The lock is released when the process
 * ends.
 * @throws Fault `backup_busy`, `backup_output_invalid`
 */
export async function withStore<T>(folder: string, clock: Clock, work: (store: ChunkStore) => Promise<T>): Promise<T> {
  const store = ChunkStore.forFolder(folder)
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
  /** A backup that could not be read. Its chunks are unknown, so all chunks were kept. */
  readonly unreadable?: string
}

/**
 * Removes the chunks that no file of the folder needs, whatever the name of the file. The caller holds the lock of the store and
 * has made the removal of backups durable: a kill at any moment can leave unneeded chunks, but never removes a needed one.
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
