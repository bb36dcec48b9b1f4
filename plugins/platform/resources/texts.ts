import {
  JsonText,
  type RecordChange,
  type RecordFilter,
  type Records,
  recordToWire,
  type StoredRecord,
  type WireRecord,
} from '../../../kernel/plugin.js'

/** Maximum characters of all cached texts, and of one of them. */
const MOST = 4 * 1024 * 1024
const LONGEST = 64 * 1024

interface Kept {
  readonly version: number
  readonly text: JsonText<WireRecord>
}

/**
 * Records as JSON for replies. Reading a row, decoding its spec and encoding both again costs several times more than reading its
 * version, so the text of each version is cached. A running transaction's writes are not: after a rollback the same version may get
 * another text.
 */
export class RecordTexts {
  readonly #kept = new Map<string, Kept>()
  #size = 0
  /** Records that the current transaction has written. */
  readonly #touched = new Set<string>()

  constructor(private readonly records: Pick<Records, 'versions' | 'getAll'>) {}

  /** Ordered by id: for single records and short lists, which are read repeatedly. */
  list(filter: RecordFilter & { readonly kind: string }): JsonText<WireRecord>[] {
    const { kind } = filter
    const texts = new Map<string, JsonText<WireRecord> | undefined>()
    const absent: string[] = []
    for (const [id, version] of this.records.versions(filter)) {
      const kept = this.#kept.get(keyOf({ kind, id }))
      const text = kept?.version === version ? kept.text : undefined
      if (!text) absent.push(id)
      texts.set(id, text)
    }
    if (absent.length > 0) for (const [id, text] of this.#read(kind, absent)) texts.set(id, text)
    return [...texts.values()] as JsonText<WireRecord>[]
  }

  /** A transaction writes or deletes the record. */
  touch(change: RecordChange): void {
    const key = keyOf(change.verb === 'put' ? change.after : change.before)
    // A transaction ends within this turn.
    if (this.#touched.size === 0) queueMicrotask(() => this.#touched.clear())
    this.#touched.add(key)
    this.#drop(key)
  }

  #drop(key: string): void {
    this.#size -= this.#kept.get(key)?.text.text.length ?? 0
    this.#kept.delete(key)
  }

  #read(kind: string, ids: readonly string[]): [id: string, text: JsonText<WireRecord>][] {
    return this.records.getAll(kind, ids).map(record => {
      const text = new JsonText<WireRecord>(JSON.stringify(recordToWire(record)))
      this.#keep(record, text)
      return [record.id, text]
    })
  }

  #keep(record: StoredRecord, text: JsonText<WireRecord>): void {
    const key = keyOf(record)
    this.#drop(key)
    const { length } = text.text
    if (length > LONGEST || this.#touched.has(key)) return
    this.#kept.set(key, { version: record.version, text })
    this.#size += length
    for (const oldest of this.#kept.keys()) {
      if (this.#size <= MOST) break
      this.#drop(oldest)
    }
  }
}

/** Unambiguous, because kind names contain no slash. */
const keyOf = ({ kind, id }: Pick<StoredRecord, 'kind' | 'id'>) => `${kind}/${id}`
