import type { StoredRecord } from '../contract/record.js'

/** Who projects records; told of what is durable. */
export interface RecordFollower {
  /** A record was written or removed; `versions` are what it was before and is now, where there is such a one. */
  changed(kind: string, id: string, versions: readonly StoredRecord[]): void
  /** Records of this kind are decoded otherwise than before. */
  recoded(kind: string): void
}
