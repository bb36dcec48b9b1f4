import { iso } from '../contract/clock.js'
import type { StoredRecord } from '../contract/record.js'

/** A record as the contract has it. */
export function recordToWire(record: StoredRecord) {
  const { createdAt, updatedAt, ...rest } = record
  return { ...rest, created_at: iso(createdAt), updated_at: iso(updatedAt) }
}
