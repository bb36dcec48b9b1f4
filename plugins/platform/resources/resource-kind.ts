import * as v from 'valibot'
import { type CliColumn, cli, describe } from '../../../kernel/kit/annotations/index.js'
import { command } from '../../../kernel/kit/commands/command-line.js'
import { Paging } from '../../../kernel/kit/page.js'
import { shown } from '../../../kernel/kit/text.js'
import {
  type Actor,
  created,
  kind as declared,
  KernelErrors,
  type Kind,
  noContent,
  ok,
  type PluginKernel,
  type PutResult,
  type RecordDelete,
  type RecordFilter,
  type RecordScope,
  type RecordWrite,
  type Route,
  recordToWire,
  routeOf,
  type StoredRecord,
} from '../../../kernel/plugin.js'
import { Integer, JsonMap, queryInteger } from '../../../schemas/kernel/common.js'
import { ListRecordsReply, PutRecordBody, RecordReply, ResourceScope } from '../../../schemas/kernel/record.js'

/** The part of the kernel that reads and writes records. */
export type RecordKernel = Pick<PluginKernel, 'db' | 'records'>

/** Options of a delete. */
export interface RepositoryDelete extends Pick<RecordDelete, 'expectedVersion' | 'direct'> {
  /** Called in the same transaction with the stored record; false hides the record from the caller. */
  readonly mayGo?: (record: StoredRecord) => boolean
}

/** The records of one kind; each write is its own transaction. Faults are those of `kernel.records`. */
export class Repository<S> {
  /** @param next the command that lists the records, for the error of a missing one */
  constructor(
    private readonly kind: Kind<S>,
    private readonly kernel: RecordKernel,
    private readonly next = command('resource list', kind.name),
  ) {}

  /** The decoded record; undefined when it is missing, or this actor may not read it. */
  find(id: string, as?: Actor): StoredRecord<S> | undefined {
    return this.kernel.records.get(this.kind, id, as) as StoredRecord<S> | undefined
  }

  /** Like {@link find}. @throws Fault `record_not_found` */
  get(id: string, as?: Actor): StoredRecord<S> {
    return this.find(id, as) ?? this.#absent(id)
  }

  /** Ordered by id; records that the codec refuses are left out. */
  list(filter: Omit<RecordFilter, 'kind'> = {}): StoredRecord<S>[] {
    return this.kernel.records.list({ ...filter, kind: this.kind }) as StoredRecord<S>[]
  }

  put(actor: Actor, write: Omit<RecordWrite, 'kind'>): Promise<PutResult<S>> {
    return this.kernel.db.tx(t => this.kernel.records.put(t, actor, { ...write, kind: this.kind }) as PutResult<S>)
  }

  /** @throws Fault `record_not_found`, also for a record that this actor may not read */
  async delete(actor: Actor, id: string, { mayGo = () => true, ...how }: RepositoryDelete = {}): Promise<void> {
    const { name: kind } = this.kind
    await this.kernel.db.tx(t => {
      const record = this.kernel.records.get(kind, id, actor)
      if (!record || !mayGo(record)) this.#absent(id)
      this.kernel.records.delete(t, actor, { kind, id, ...how })
    })
  }

  #absent(id: string): never {
    throw KernelErrors.record_not_found(`there is no ${this.kind.name} record ${shown(id)}`, { next: this.next })
  }
}

/** The routes and commands of a kind. */
export interface ResourceRoutes<T> {
  /** `/api/ext/acme.notes/notes` */
  readonly path: `/${string}`
  readonly area: string
  /** Group of the commands `list`, `show`, `put` and `delete`: `note` for `svc note list`. */
  readonly command: string
  /** For people: `note`, `notes`. */
  readonly noun: readonly [one: string, many: string]
  /** Columns of the list after the id; paths begin with `spec.`. */
  readonly columns?: readonly CliColumn[]
  /** Gets the kernel from the plugin's service; not needed without a service. */
  readonly kernel?: (service: T) => RecordKernel
}

/** Declares a kind whose records have a typed repository and, optionally, routes and commands. */
export function resourceKind<S>(definition: Kind<S>) {
  const kind = declared(definition)
  return {
    kind,
    repository: (kernel: RecordKernel) => new Repository(kind, kernel),
    /** List, show, put and delete, each with its command, for the surface of the plugin. */
    routes: <T = PluginKernel>(options: ResourceRoutes<T>) => routesOf(kind, options),
  }
}

const ListQuery = v.object({ limit: v.optional(queryInteger(1, 200)), cursor: v.optional(v.string()) })
const ListReply = v.object({
  ...ListRecordsReply.entries,
  page: v.object({ limit: Integer, has_more: v.boolean(), next_cursor: v.optional(v.string()) }),
})
/** Without a scope the record is global; without a version it must be new. */
const PutBody = v.strictObject({ ...PutRecordBody.entries, scope: v.optional(ResourceScope), spec: JsonMap })
/** Without a version any version is deleted. */
const DeleteQuery = v.object({ expected_version: v.optional(queryInteger(1)) })
const paging = new Paging({ place: v.string() })

function routesOf<S, T>(kind: Kind<S>, options: ResourceRoutes<T>): Route<T>[] {
  const { path, area, command, noun, columns = [], kernel = (service: T) => service as RecordKernel } = options
  const [one, many] = noun
  const route = routeOf<T>()
  const item: `${string}/{id}` = `${path}/{id}`
  const repository = (service: T) => new Repository(kind, kernel(service), `svc ${command} list`)
  const shownColumns = [{ header: 'ID', path: 'id' }, ...columns, { header: 'Version', path: 'version' }]
  return [
    route({
      method: 'GET',
      path,
      summary: `List ${many} by id`,
      query: ListQuery,
      replies: { 200: ListReply },
      with: [
        describe(area),
        cli(`${command} list`, {
          view: { rows: 'records', columns: shownColumns, empty: `no ${many}; write one: svc ${command} put --help` },
        }),
      ],
      handle: (service, { query, actor }) => {
        const { limit = 50 } = query
        const page = { actor, query: { kind: kind.name } }
        const id = paging.after(page, query.cursor)
        const after = id === undefined ? {} : { after: { kind: kind.name, id } }
        // As stored, so that records which the codec refuses are listed too.
        const records = kernel(service).records.list({ ...after, kind: kind.name, as: actor, limit: limit + 1 })
        const { rows, ...more } = paging.cut(page, records, limit, record => record.id)
        return ok({ records: rows.map(recordToWire), page: { limit, ...more } })
      },
    }),
    route({
      method: 'GET',
      path: item,
      summary: `Show one ${one}`,
      replies: { 200: RecordReply },
      with: [describe(area), cli(`${command} show`, { view: { item: 'record', fields: shownColumns } })],
      handle: (service, { params, actor }) => ok({ record: recordToWire(repository(service).get(params.id, actor)) }),
    }),
    route({
      method: 'PUT',
      path: item,
      summary: `Create or change a ${one}`,
      body: PutBody,
      // The remainder is for the members beside the spec.
      bodyLimit: kind.maxBytes + 4096,
      replies: { 200: RecordReply, 201: RecordReply },
      with: [describe(area), cli(`${command} put`, { done: `stored ${one} {id}` })],
      handle: async (service, { params, body, actor }) => {
        const { scope = { kind: 'global' as const }, spec, expected_version: expectedVersion = 0 } = body
        const write = { ...params, scope: scope as RecordScope, spec, expectedVersion, direct: true }
        const stored = await repository(service).put(actor, write)
        const reply = { record: recordToWire(stored.record) }
        return stored.created ? created(reply) : ok(reply)
      },
    }),
    route({
      method: 'DELETE',
      path: item,
      summary: `Remove a ${one}`,
      essential: true,
      query: DeleteQuery,
      replies: { 204: null },
      with: [describe(area), cli(`${command} delete`, { done: `deleted ${one} {id}` })],
      handle: async (service, { params, query, actor }) => {
        await repository(service).delete(actor, params.id, { expectedVersion: query.expected_version, direct: true })
        return noContent()
      },
    }),
  ]
}
