import { KernelErrors } from '../contract/errors.js'
import type { Snapshot } from '../contract/record.js'
import { nameOf } from './checks.js'

const MAX_RECORDS = 256
const MAX_BYTES = 2 * 1024 * 1024

/** What can be said of a snapshot without a look at the catalog, but for its single records. */
export function checkSnapshot({ sourceVersion, records }: Snapshot): void {
  if (!Number.isSafeInteger(sourceVersion))
    throw KernelErrors.invalid_snapshot('the source version of a snapshot is a whole number')
  if (records.length > MAX_RECORDS)
    throw KernelErrors.payload_too_large(`a snapshot has at most ${MAX_RECORDS} records, this one ${records.length}`)
  const seen = new Set<string>()
  for (const { kind, id, expectedVersion = 0 } of records) {
    const key = keyOf(nameOf(kind), id)
    if (expectedVersion !== 0) throw KernelErrors.invalid_snapshot(`${key}: in a snapshot expected_version is 0`)
    if (seen.has(key)) throw KernelErrors.invalid_snapshot(`${key} is in the snapshot twice`)
    seen.add(key)
  }
}

export function checkBytes(specs: readonly string[]): void {
  const bytes = specs.reduce((sum, spec) => sum + Buffer.byteLength(spec), 0)
  if (bytes > MAX_BYTES)
    throw KernelErrors.payload_too_large(
      `the specs of the snapshot have ${bytes} bytes, at most ${MAX_BYTES} are allowed`,
    )
}

/** Kind names have no slash. */
export const keyOf = (kind: string, id: string) => `${kind}/${id}`
