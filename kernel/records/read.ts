import { Fault, KernelErrors } from '../contract/errors.js'
import type { Kind } from '../contract/kind.js'
import type { StoredRecord } from '../contract/record.js'
import { decodeSpec } from './checks.js'
import { fromRow, type Row } from './rows.js'

/**
 * A record as it is read by a kind: decoded by its codec, and as it is stored where the kind is only named. The codec is the one
 * of the reader, whose types it has, and not the one that is registered.
 * @throws Fault `invalid_spec` when the codec refuses it
 */
export function read(kind: string | Kind | undefined, record: StoredRecord): StoredRecord<never> {
  if (typeof kind !== 'object') return record as StoredRecord<never>
  try {
    return { ...record, spec: decodeSpec(kind, record) as never }
  } catch (cause) {
    if (!(cause instanceof Fault)) throw cause
    const { id, version } = record
    const text = `what is stored as ${kind.name} ${id}, version ${version}, is not valid: ${cause.message}; write it anew or delete it`
    const { details } = cause
    throw KernelErrors.invalid_spec(text, { details, next: `svc resource get ${kind.name} ${id}`, cause })
  }
}

/** Records as they are read by a kind, without those that its codec refuses. */
export function readAll(kind: string | Kind | undefined, rows: readonly Row[]): StoredRecord<never>[] {
  const records: StoredRecord<never>[] = []
  for (const row of rows) {
    try {
      records.push(read(kind, fromRow(row)))
    } catch {
      // One that is not valid must not keep the others from whoever asks; the reconcile loop names it.
    }
  }
  return records
}
