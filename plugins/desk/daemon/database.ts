import type { HostView } from '../../../kernel/plugin.js'
import type { DbStatusReply, DiskHealth } from '../../../schemas/daemon.js'

type Store = ReturnType<HostView['store']>

/** The catalog's files, as the API tells them. */
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
