import fs from 'node:fs/promises'
import type { HostView } from '../../../kernel/plugin.js'
import type { DbStatusReply, DiskHealth } from '../../../schemas/daemon.js'

type Store = ReturnType<HostView['store']>

/** The status of the catalog's files, as an API reply. */
export function databaseStatus({ failed, ...store }: Store, disk: DiskHealth): DbStatusReply {
  return {
    status: failed === undefined ? 'ok' : 'failed',
    ...(failed === undefined ? {} : { error: failed }),
    path: store.path,
    bytes: store.bytes,
    wal_bytes: store.walBytes,
    transactions: store.transactions,
    syncs: store.syncs,
    disk,
    schema_streams: schemaStreams(store),
  }
}

export function schemaStreams({ streams }: Pick<Store, 'streams'>): DbStatusReply['schema_streams'] {
  return streams.map(({ owner, version, applied, digest }) => ({
    stream: owner,
    version,
    applied_count: applied,
    sum_digest: digest,
  }))
}

/** Number of copies in progress for each database. Checkpoints resume only after the last copy. */
const copies = new WeakMap<HostView, number>()

/**
 * Suspends automatic checkpoints during `work`: the log grows and the database file stays unchanged, except by an explicit
 * checkpoint.
 */
export async function holdingCheckpoints<T>(host: HostView, work: () => Promise<T>): Promise<T> {
  copies.set(host, (copies.get(host) ?? 0) + 1)
  host.autocheckpoint(false)
  try {
    return await work()
  } finally {
    const left = (copies.get(host) ?? 1) - 1
    copies.set(host, left)
    if (left === 0) host.autocheckpoint(true)
  }
}

/** Copies a file; false if it was written during the copy. */
export async function copiedUnchanged(from: string, to: string): Promise<boolean> {
  const stamp = async () => (await fs.stat(from, { bigint: true })).mtimeNs
  const before = await stamp()
  await fs.copyFile(from, to, fs.constants.COPYFILE_FICLONE)
  return (await stamp()) === before
}
