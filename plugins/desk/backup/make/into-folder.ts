import path from 'node:path'
import { type Clock, iso } from '../../../../kernel/plugin.js'
import type { BackupKind, BackupReply } from '../../../../schemas/daemon/backup.js'
import { isSealing, type Sealing } from '../archive/seal.js'
import { collect, withStore } from '../chunks/collect.js'
import type { ChunkStore } from '../chunks/store.js'
import { isNamedAsBackup, noteChecked, prune, removeAbandoned } from '../folder.js'
import { outputOf } from './output.js'
import { type Material, type Written, writeBackup } from './write-backup.js'

/** Largest number of omitted files that a reply names. */
const NAMED = 50

export interface PutOptions {
  /** Absolute path of the file, or of an existing folder. Default: a file in `folder`. */
  readonly output?: string | undefined
  /** The folder of backups, and how many of each kind are kept there. */
  readonly folder: string
  readonly keep: number
  readonly kind: BackupKind
  readonly sealing: Sealing
  readonly signal: AbortSignal
  readonly clock: Clock
}

/**
 * Writes a backup to its destination. A plain backup in the folder of backups shares chunks with the others; a backup elsewhere,
 * or an encrypted one, is self-contained.
 * @throws Fault those of `writeBackup`, `outputOf` and `withStore`
 */
export async function putBackup(material: Material, options: PutOptions): Promise<BackupReply> {
  const { folder, keep, kind, sealing, signal, clock } = options
  const { home_id: homeId, created_at } = material.header
  const now = clock.now()
  const output = await outputOf({ ...options, now, isSealed: isSealing(sealing), homeId })
  const write = (store?: ChunkStore) => writeBackup({ material, output, sealing, store, signal })
  const finish = async (store: ChunkStore): Promise<string[]> => {
    await noteChecked(output, clock.now())
    return prune(folder, { homeId, keep, now: clock.now(), store })
  }
  let written: Written
  let removed: readonly string[] = []
  let chunked = 0
  if (options.output === undefined && !isSealing(sealing)) {
    ;({ written, removed, chunked } = await withStore(folder, clock, async store => {
      try {
        const written = await write(store)
        return { written, chunked: store.written, removed: await finish(store) }
      } catch (error) {
        await collect(folder, store, isNamedAsBackup).catch(() => {})
        throw error
      }
    }))
  } else {
    await removeAbandoned(path.dirname(output), now)
    written = await write()
    if (path.dirname(output) === folder) removed = await withStore(folder, clock, finish)
    else await noteChecked(output, clock.now())
  }
  return {
    backup: {
      name: path.basename(output),
      path: output,
      created_at: iso(created_at),
      bytes: written.bytes,
      added_bytes: written.bytes + chunked,
      whole_bytes: written.wholeBytes,
      kind,
      encrypted: isSealing(sealing),
      verified_at: iso(clock.now()),
    },
    files: written.files,
    left_out: material.contents.leftOut.slice(0, NAMED),
    vault_key: material.vaultKey,
    removed: [...removed],
  }
}
