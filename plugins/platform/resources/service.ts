import { command } from '../../../kernel/kit/commands/command-line.js'
import { shown } from '../../../kernel/kit/text.js'
import {
  type Actor,
  KernelErrors,
  KIND_NAME,
  type RecordFilter,
  type RecordScope,
  recordToWire,
  type StoredRecord,
  turn,
} from '../../../kernel/plugin.js'
import type { DeleteRecordBody, ListRecordsQuery, ListRecordsReply, PutRecordBody } from '../../../schemas/resources.js'
import { ResourceErrors } from './api.js'
import { filterOf } from './filter.js'
import type { K } from './needs.js'
import { type Caller, OperatorWriteLimit, RateLimiter } from './rate-limit.js'
import { RecordTexts } from './texts.js'

/**
 * Kinds whose lifecycle belongs to a service. They are refused even while its plugin is absent: otherwise the service would later
 * mistake such a record for its own.
 */
const SERVICE_OWNED: readonly string[] = ['bundle.activation']

/** Records that are read in one turn of the event loop. */
const PAGE = 500
/** Maximum length of a list that uses the cached texts; a longer one would displace the others. */
const SHORT = 200

/** The record routes: the kernel's record operations, one transaction per request. */
export class ResourcesService {
  readonly texts: RecordTexts
  readonly #limiter: RateLimiter

  constructor(private readonly kernel: K) {
    this.texts = new RecordTexts(kernel.records)
    this.#limiter = new RateLimiter(kernel.config.get(OperatorWriteLimit), kernel.clock)
  }

  /** Throws `invalid_kind`. */
  checkKind(kind: string): void {
    if (!KIND_NAME.test(kind)) throw KernelErrors.invalid_kind()
  }

  /** Refusals before the body is read: `invalid_kind` and `invalid_id` (422), then the writer (403). */
  checkWriter(actor: Actor, kind: string, id: string): void {
    this.kernel.records.checkWriter(actor, kind, id)
    if (SERVICE_OWNED.includes(kind)) {
      throw KernelErrors.owner_only(
        `records of kind ${kind} are written only by the service that owns them; here they are read-only`,
      )
    }
  }

  list(as: Actor, query: ListRecordsQuery, pathKind?: string) {
    const filter = filterOf(query, pathKind)
    const { kind, limit = Number.POSITIVE_INFINITY } = filter
    if (kind !== undefined) this.checkKind(kind)
    if (kind === undefined || limit > SHORT) return this.#pages(as, filter)
    return { records: this.texts.list({ ...filter, kind, as }) }
  }

  /** Reads page by page. A record that is written meanwhile appears in its old or new state, never twice. */
  async #pages(as: Actor, { limit: wanted = Number.POSITIVE_INFINITY, ...filter }: RecordFilter) {
    const records: ListRecordsReply['records'] = []
    let after: RecordKey | undefined
    do {
      const limit = Math.min(PAGE, wanted - records.length)
      const page = this.kernel.records.list({ ...filter, as, limit, ...(after && { after }) })
      for (const record of page) records.push(recordToWire(record))
      after = page.length === limit && records.length < wanted ? page.at(-1) : undefined
      if (after) await turn()
    } while (after)
    return { records }
  }

  get(as: Actor, kind: string, id: string) {
    const [record] = this.texts.list({ kind, id, as })
    if (!record) {
      const next = command('resource list', kind)
      throw KernelErrors.record_not_found(`there is no ${kind} record ${shown(id)}`, { next })
    }
    return { record }
  }

  /** Without a version the record must be new, as with version 0, so that nothing is overwritten unseen. */
  async put(key: RecordKey, body: PutRecordBody, actor: Actor, caller: Caller): Promise<Stored> {
    await this.#limiter.pass(caller, limited)
    const { kind, id } = key
    const expectedVersion = body.expected_version ?? 0
    const { record, created } = await this.kernel.db.tx(t =>
      this.kernel.records.put(t, actor, {
        kind,
        id,
        scope: scopeOf(body.scope),
        spec: body.spec,
        expectedVersion,
        direct: true,
      }),
    )
    return { record, created }
  }

  async delete(key: RecordKey, body: DeleteRecordBody | undefined, actor: Actor, caller: Caller): Promise<void> {
    await this.#limiter.pass(caller, limited)
    await this.kernel.db.tx(t =>
      this.kernel.records.delete(t, actor, { ...key, expectedVersion: body?.expected_version, direct: true }),
    )
  }
}

interface RecordKey {
  readonly kind: string
  readonly id: string
}

interface Stored {
  readonly record: StoredRecord
  readonly created: boolean
}

/** An empty id means none: a global scope may carry one. */
function scopeOf(scope: PutRecordBody['scope']): RecordScope {
  const id = scope.id?.trim()
  return id ? { kind: scope.kind, id } : { kind: scope.kind }
}

const limited = (waitMs: number) =>
  ResourceErrors.write_rate_limited(undefined, { retryAfter: Math.ceil(waitMs / 1000) })
