import { createHash } from 'node:crypto'
import * as v from 'valibot'
import { annotationOf, canRunCode } from '../../../kernel/kit/annotations/index.js'
import { canonicalJson } from '../../../kernel/kit/canonical.js'
import { command } from '../../../kernel/kit/commands/command-line.js'
import { issueLine } from '../../../kernel/kit/issue-text.js'
import { Serial } from '../../../kernel/kit/serial.js'
import { shown } from '../../../kernel/kit/text.js'
import { isSchema } from '../../../kernel/platform.js'
import {
  type Actor,
  type Asked,
  type Awaitable,
  type Handled,
  type Identified,
  KernelErrors,
  type Route,
  type StoredRecord,
  type Tx,
  type Written,
} from '../../../kernel/plugin.js'
import type { ControlChange, ControlChangeDetail, Plan, PlanBody, UndoReply } from '../../../schemas/daemon/changes.js'
import { namesOf } from '../../platform/audit/api.js'
import type { StoredEvent } from '../../platform/events/api.js'
import { redactText } from '../../platform/redaction/api.js'
import {
  ChangeErrors,
  type ChangeRequest,
  type ChangeSeen,
  type ChangesApi,
  points,
  type Undo,
  UndoKind,
} from './api.js'
import { at, differences, lasting, pick, pickPaths, shaped, withNulls } from './members.js'
import type { K } from './needs.js'
import { filled, listOf, neighbourOf, RouteTable } from './routes-table.js'
import { type ChangeRow, changes, toWire } from './tables.js'

/** Header that makes a request fail unless its plan still applies. */
const PLAN_HEADER = 'svc-plan'
/** Header of an in-process request that undoes a change: the id of that change. */
const UNDOES_HEADER = 'svc-undoes'
/** Changes that are kept. Older ones are not shown, and a few wait to be pruned together. */
const KEPT = 200
const PRUNED_AFTER = 32
const IS_KEPT = `seq > (SELECT max(seq) FROM changes_change) - ${KEPT}`
/** Most characters of a state before or after a change. */
const MAX_STATE = 65_536
const SUBJECT = 500
/** The newest events among which a request that is not recorded is looked for. */
const EVENTS_READ = 1000
/** Most pending requests whose former state is remembered. */
const UNDER_WAY = 1000

/** Members of a record that its undo restores. */
const RESTORED = ['scope', 'spec'] as const

/** A request before it is handled. */
type Asking = Pick<ChangeSeen, 'path' | 'params' | 'query' | 'body'>

/** A change in progress; its outcome is not known yet. */
interface Pending {
  readonly request: Asking
  /** Paths of the reads, one per line; absent if nothing was read. */
  readonly reads: string | undefined
  before: unknown
  /** The record after the change; other states are read again. */
  after?: unknown
  readonly way: Undo
  /** The route, for a record: its change is stored in the transaction that writes it. */
  readonly route?: Route
  isStored?: boolean
  /** Whether the event of the way was written. */
  isTold?: boolean
}

/** The data for an undo, or the reason why the change cannot be undone. */
type Outcome = { readonly reason: string } | Pick<ChangeRow, 'reads' | 'before' | 'after' | 'back'>

/** Plans of requests, and undo of successful requests. */
export class ChangesService implements ChangesApi {
  readonly planning
  readonly undoing
  readonly #routes: RouteTable
  readonly #pending = new Map<string, Pending>()
  /** Serializes undos: the second must see the state that the first restored. */
  readonly #undos = new Serial()
  /** The id of the undone change, by the id of the request that undoes it. */
  readonly #backs = new Map<string, string>()
  /** Changes stored since the start. */
  #stored = 0

  constructor(private readonly kernel: K) {
    const { planning, undoing } = kernel.hooks.of(points)
    this.planning = planning
    this.undoing = undoing
    this.#routes = new RouteTable(kernel)
  }

  /** Routes changed; the cached table is outdated. */
  published(): void {
    this.#routes.renew()
  }

  /**
   * Runs before a request is handled: checks the request against its plan, and reads the present state if the change can be
   * undone.
   */
  admit(incoming: Identified, route: Route): undefined {
    if (incoming.method === 'GET') return
    const { id, actor, method, url } = incoming
    const undoes = incoming.door === 'inject' ? incoming.headers[UNDOES_HEADER] : undefined
    if (typeof undoes === 'string') this.#backs.set(id, undoes)
    const digest = incoming.headers[PLAN_HEADER]
    const way = annotationOf(route, UndoKind)
    const told = toldOf(way)
    const isRead = way !== undefined && way.by !== 'never' && way.by !== 'record' && !told
    if (digest === undefined && !isRead) {
      if (way?.by === 'record' || told)
        incoming.callBy(<T>(handle: () => T, { params, body }: Asked): T => {
          const request = { path: filled(route.path, params), params, query: '', body }
          if (way?.by === 'record') this.#remember(id, { request, reads: request.path, before: undefined, way, route })
          else if (way?.by === 'custom')
            this.#remember(id, { request, reads: way.reads(request).join('\n'), before: told?.before, way })
          return handle()
        })
      return
    }
    const query = url.includes('?') ? url.slice(url.indexOf('?')) : ''
    incoming.callBy(<T>(handle: () => T, { params, body }: Asked): T => {
      const request = { path: filled(route.path, params), params, query, body }
      const surrounded = async () => {
        // If the former state cannot be read, the change still proceeds. Only a plan requires that state.
        const snapshot = await this.#read(route, request, actor).catch(error => {
          if (digest !== undefined) throw error
        })
        if (digest !== undefined) {
          if (!/^[0-9a-f]{32}$/.test(String(digest)))
            throw ChangeErrors.plan_outdated(
              'nothing was changed: --plan takes the digest that a dry run printed; make one: --dry-run',
            )
          const current = digestOf(method, filled(route.path, params) + query, body, snapshot?.state)
          if (current !== digest) throw ChangeErrors.plan_outdated()
        }
        if (snapshot && way && way.by !== 'never')
          this.#remember(id, { request, reads: snapshot.reads, before: snapshot.state, way })
        try {
          return await (handle() as Awaitable<unknown>)
        } catch (error) {
          this.#pending.delete(id)
          this.#backs.delete(id)
          throw error
        }
      }
      return surrounded() as T
    })
  }

  /** Stores the change of a record within the transaction that writes it, which saves a commit. */
  written(t: Tx, { change }: Written): void {
    const { actor } = change
    const id = actor.cause ?? ''
    const pending = this.#pending.get(id)
    // A later write with this cause is a consequence of the request.
    if (!pending?.route || pending.isStored) return
    pending.isStored = true
    pending.before = change.before
    pending.after = change.verb === 'put' ? change.after : undefined
    const { request, route, after } = pending
    const outcome = this.#compared(pending, route, request.params, undefined, after)
    if (outcome)
      this.#store(this.kernel.db.within(t), { id, actor, route, params: request.params, body: undefined }, outcome)
  }

  /** The event that a route names shows that its request changed something. */
  onEvent({ name, cause }: StoredEvent): undefined {
    const pending = cause === undefined ? undefined : this.#pending.get(cause)
    if (pending && toldOf(pending.way)?.name === name) pending.isTold = true
  }

  /** Bounded, because a request that ends without a reply is never removed. */
  #remember(id: string, pending: Pending): void {
    this.#pending.set(id, pending)
    if (this.#pending.size <= UNDER_WAY) return
    const [oldest] = this.#pending.keys()
    this.#pending.delete(oldest as string)
  }

  /** Runs after a successful request: stores the change. */
  handled(handled: Handled): Promise<void> | undefined {
    const { id, route } = handled
    const pending = this.#pending.get(id)
    // Changes of unaudited routes (events report them) are stored only if they can be undone.
    if (route.audited === false && pending === undefined) return undefined
    const undone = this.#backs.get(id)
    this.#pending.delete(id)
    this.#backs.delete(id)
    return pending?.isStored && undone === undefined ? undefined : this.#finish(handled, pending, undone)
  }

  async #finish(
    { id, actor, route, params, body }: Handled,
    pending: Pending | undefined,
    undone: string | undefined,
  ): Promise<void> {
    const outcome = pending ? await this.#outcome(pending, route, params, body, actor) : { reason: whyNot(route) }
    if (outcome === undefined && undone === undefined) return
    await this.kernel.db.tx(t => {
      if (undone !== undefined) changes.update(t, { id: undone }, { state: 'undone', undone_by: id })
      if (outcome) this.#store(t, { id, actor, route, params, body }, outcome)
    })
  }

  #store(t: Tx, { id, actor, route, params, body }: Handled, outcome: Outcome): void {
    const { action, subject } = namesOf(route, params, body)
    changes.insert(t, {
      id,
      at: this.kernel.clock.now(),
      action,
      subject: this.kernel.redact.text(subject, SUBJECT),
      method: route.method,
      path: route.path,
      params,
      actor_kind: actor.kind,
      actor_id: actor.id,
      ...outcome,
      state: 'reason' in outcome ? 'kept' : 'undoable',
    })
    // The first one prunes what an earlier daemon left.
    if (this.#stored++ % PRUNED_AFTER === 0)
      t.run('DELETE FROM changes_change WHERE seq <= (SELECT max(seq) FROM changes_change) - ?', [KEPT])
  }

  /** The entry of a change; undefined if the state did not change. */
  async #outcome(pending: Pending, route: Route, params: Asking['params'], reply: unknown, actor: Actor) {
    const { way, reads } = pending
    if (pending.isStored || (toldOf(way) && !pending.isTold)) return undefined
    const isKnown = way.by === 'record' || reads === undefined
    const after = isKnown ? pending.after : (stateInReply(way, pending, reply) ?? (await this.#get(reads, actor)).state)
    return this.#compared(pending, route, params, reply, after)
  }

  #compared(
    { request, way, before, reads }: Pending,
    route: Route,
    params: Asking['params'],
    reply: unknown,
    after: unknown,
  ): Outcome | undefined {
    const isRecord = way.by === 'record'
    const coreOf = (state: unknown) => {
      if (!isRecord) return this.#core(way, route, request.body, state)
      if (state === undefined) return undefined
      const { scope, spec } = state as StoredRecord
      return { scope, spec }
    }
    const cores = [coreOf(before), coreOf(after)]
    const [was, is] = cores.map(core => (core === undefined ? undefined : canonicalJson(core)))
    if (reads !== undefined && was === is) return undefined
    const path = params === request.params ? request.path : filled(route.path, params)
    const { query, body } = request
    const back = this.#back(way, route, { path, params, query, body, before, after }, reply)
    const text = canonicalJson(back)
    // The request that restores a record consists of members of its former state; the search for secrets is most of the cost.
    const reason =
      typeof back === 'string'
        ? back
        : isRecord
          ? (this.#whyUnsaid(was, cores[0]) ?? this.#whyUnsaid(is, cores[1]))
          : (this.#whyUnsaid(was) ?? this.#whyUnsaid(is) ?? this.#whyUnsaid(text))
    return reason === undefined ? { reads, before: was, after: is, back: text } : { reason }
  }

  /** The reason why a state is not stored. @param state what the text says, if that consists of plain values */
  #whyUnsaid(text: string | undefined, state: unknown = JSON.parse(text ?? 'null')): string | undefined {
    if (text === undefined) return undefined
    if (text.length > MAX_STATE) return 'the former state is too large to be stored'
    // A value without secrets is returned as it is, and its text is there already.
    if (this.kernel.redact.value(state) !== state || redactText(text) !== text || text.includes('[redacted'))
      return 'it contains a secret, which is not stored'
    return undefined
  }

  /** The part of a state that the undo restores. */
  #core(way: Undo, route: Route, body: unknown, state: unknown): unknown {
    if (state === undefined) return undefined
    switch (way.by) {
      case 'put':
        return present(pick(at(state, way.of), bodyNames(this.#routes.at('PUT', route.path))))
      case 'create':
        return present(pick(at(state, way.of), bodyNames(this.#routes.at('POST', listOf(route.path)))))
      case 'patch':
        return shaped(at(state, way.of), body, way.in)
      case 'record':
        return pick(at(state, 'record'), RESTORED)
      case 'custom': {
        const { of = '', compares } = way
        const core = (one: unknown) => (compares ? pickPaths(at(one, of), compares) : lasting(at(one, of)))
        return Array.isArray(state) ? state.map(core) : core(state)
      }
      default:
        return lasting(state)
    }
  }

  /** The request that restores the former state, or why there is none. */
  #back(way: Undo, route: Route, change: ChangeSeen, reply: unknown): ChangeRequest | string {
    const { path } = change
    const core = () => this.#core(way, route, change.body, change.before)
    switch (way.by) {
      case 'put':
        if (change.before === undefined) return { method: 'DELETE', path: path + change.query }
        return { method: 'PUT', path: path + change.query, body: { ...way.absent, ...Object(core()) } }
      case 'patch':
        return { method: 'PATCH', path: path + change.query, body: withNulls(core(), change.body, way.in) }
      case 'create':
        return { method: 'POST', path: filled(listOf(route.path), change.params) + change.query, body: core() }
      case 'delete': {
        const name = at(reply, way.of)
        return typeof name === 'string'
          ? { method: 'DELETE', path: `${path}/${encodeURIComponent(name)}${change.query}` }
          : 'the reply did not identify the created object'
      }
      case 'record': {
        const version = Object(change.after).version as number | undefined
        const expected = version === undefined ? {} : { expected_version: version }
        // Members in the order of canonical JSON, which then needs no sorting: each change of a record pays for it.
        if (change.before === undefined) return { body: expected, method: 'DELETE', path }
        return { body: { ...expected, ...pick(change.before, RESTORED) }, method: 'PUT', path }
      }
      case 'action':
        return {
          method: 'POST',
          path: filled('verb' in way ? neighbourOf(route.path, way.verb) : way.path, change.params) + change.query,
        }
      case 'custom':
        return way.request(change)
      case 'never':
        return way.why
    }
  }

  /** Reads the present state that a request changes, with the permissions of its caller. */
  async #read(route: Route, request: Asking, actor: Actor) {
    const way = annotationOf(route, UndoKind)
    const template = this.#routes.readOf(route)
    const reads =
      way?.by === 'custom'
        ? way.reads(request).join('\n')
        : template && filled(template, request.params) + acceptedQuery(this.#routes.at('GET', template), request.query)
    return reads ? this.#get(reads, actor) : { reads: undefined, state: undefined }
  }

  /** The state at paths (one per line); a list if there are several paths. */
  async #get(reads: string, actor: Actor): Promise<{ readonly reads: string; readonly state: unknown }> {
    const paths = reads.split('\n')
    if (paths.length > 1) {
      const states = await Promise.all(paths.map(async path => (await this.#get(path, actor)).state ?? null))
      return { reads, state: states }
    }
    // The reply of the change, or to the plan or the undo, waits for the disk.
    const { status, body } = await this.kernel.needs.request({ method: 'GET', url: reads, waits: false }, actor)
    if (status < 400) return { reads, state: body === '' ? undefined : JSON.parse(body) }
    if (status === 404 || status === 410) return { reads, state: undefined }
    const [bare = '', query] = reads.split('?')
    // The read may not accept the query of the change.
    if (status === 400 && query !== undefined) return this.#get(bare, actor)
    throw ChangeErrors.plan_refused(`${bare} cannot be read before it is changed: ${errorIn(body)}`)
  }

  /**
   * Plans a request without changing anything.
   * @throws Fault `route_not_found`, `plan_refused` with the problem of the body, and faults of the read of the present state
   */
  async plan({ method, path, body }: PlanBody, actor: Actor): Promise<Plan> {
    if (!path.startsWith('/api/')) throw ChangeErrors.plan_refused('path: a path below /api/ is expected')
    const [bare = '', search] = path.split('?')
    const query = search === undefined ? '' : `?${search}`
    const matched = this.#routes.match(method, bare)
    if (!matched) throw KernelErrors.route_not_found(`no route serves ${method} ${shown(bare)}`)
    const { route, params } = matched
    const input = decodedBody(route, body)
    const { reads, state } = await this.#read(
      route,
      { path: filled(route.path, params), params, query, body: input },
      actor,
    )
    const { action, subject } = namesOf(route, params, undefined)
    const way = annotationOf(route, UndoKind)
    const reason = way === undefined || way.by === 'never' ? whyNot(route) : undefined
    const notes = await this.planning.run([], { method, path: route.path, body: input })
    return this.kernel.redact.value({
      digest: digestOf(method, filled(route.path, params) + query, input, state),
      method,
      path,
      summary: route.summary,
      action,
      subject,
      ...(reads !== undefined && { reads: reads.split('\n'), exists: state !== undefined }),
      members: plannedMembers(route, input, state),
      ...(notes.length > 0 && { notes: [...notes] }),
      changes_nothing: route.audited === false && !canRunCode(route),
      can_be_undone: reason === undefined,
      ...(reason !== undefined && { reason }),
    } satisfies Plan) as Plan
  }

  list(limit = 20): ControlChange[] {
    const rows = this.kernel.db.rows(`SELECT seq FROM changes_change WHERE ${IS_KEPT} ORDER BY seq DESC LIMIT +?`, [
      limit,
    ])
    return rows.flatMap(([seq]) => {
      const row = changes.get(this.kernel.db, { seq: Number(seq) })
      return row ? [toWire(row)] : []
    })
  }

  /** @throws Fault `change_not_found` */
  one(id: string): ControlChangeDetail {
    const row = this.#row(id)
    const [before, after] = [row.before, row.after].map(text => (text === undefined ? undefined : JSON.parse(text)))
    return { ...toWire(row), members: differences(before, after) }
  }

  /**
   * Restores the state before a change. `last` is the newest change that is not undone.
   * @throws Fault `change_not_found`, `undo_impossible`, `undo_outdated`, and faults of the restoring request
   */
  undo(id: string, force: boolean, actor: Actor): Promise<UndoReply> {
    return this.#undos.run(async () => {
      const row = this.#row(id)
      const { action, subject, path, params, reads, before, after } = row
      const what = `${action} of ${subject}`
      const passed = id === 'last' ? await this.#unrecordedAfter(row, actor) : undefined
      const notes = passed === undefined ? [] : [`${passed} is newer; it is not recorded and stays as it is`]
      if (row.state === 'undone') throw ChangeErrors.undo_impossible(`${what} was already undone, by ${row.undone_by}`)
      if (row.state === 'kept' || row.back === undefined)
        throw ChangeErrors.undo_impossible(`${what} cannot be undone: ${[row.reason, ...notes].join('; ')}`)
      const back = JSON.parse(row.back) as ChangeRequest
      const refusal = await this.undoing.ask({ action, subject, path, params })
      if (refusal) throw ChangeErrors.undo_refused(`${what}: ${refusal.message}`)
      const now = reads === undefined ? undefined : await this.#stateAt(row, reads, actor)
      if (!force && reads !== undefined && now !== after)
        throw ChangeErrors.undo_outdated(`${what}: it has been changed again since then`, {
          next: command('undo', row.id, '--force'),
        })
      const requestId = await this.#send(back, row.id, actor)
      const then = reads === undefined ? undefined : await this.#stateAt(row, reads, actor)
      const parsed = (text: string | undefined) => (text === undefined ? undefined : JSON.parse(text))
      // A recreated object has a new id, so it is not found at its former path.
      const isElsewhere = reads === undefined || (back.method === 'POST' && then === undefined)
      const differs = isElsewhere ? [] : differences(parsed(before), parsed(then)).map(({ member }) => member)
      const made = changes.get(this.kernel.db, { id: requestId })
      return {
        change: toWire(this.#row(row.id)),
        ...(row.method === 'DELETE' && back.method === 'POST' && made && { made: made.subject }),
        request: `${back.method} ${back.path}`,
        undone_by: requestId,
        differs,
        ...(notes.length > 0 && { notes }),
      }
    })
  }

  /** The newest request of this person after a change that is not stored itself; the event log knows it also after a restart. */
  async #unrecordedAfter({ at }: ChangeRow, { kind, id }: Actor): Promise<string | undefined> {
    const { events } = this.kernel.needs
    const newest = events.latest({})?.seq ?? 0
    const found = await events.list({ after: Math.max(0, newest - EVENTS_READ), limit: EVENTS_READ })
    // The events of a request may go on long after it, so its first one counts.
    const firsts = new Map<string, StoredEvent>()
    for (const event of found) {
      const { actor, cause } = event
      const isOwn = actor.kind === kind && actor.id === id && actor.on_behalf_of === undefined
      if (isOwn && cause !== undefined && !firsts.has(cause)) firsts.set(cause, event)
    }
    const isStored = (cause: string) =>
      this.kernel.db.row('SELECT 1 FROM changes_change WHERE id = ? OR undone_by = ?', [cause, cause]) !== undefined
    const last = [...firsts].findLast(([cause, event]) => event.at >= at && !isStored(cause))?.[1]
    return last && `${last.name} of ${last.subject}`
  }

  /** Sends the request that undoes a change; returns its id. */
  async #send({ method, path, body }: ChangeRequest, undone: string, actor: Actor): Promise<string> {
    const headers = { [UNDOES_HEADER]: undone }
    const request = { method, url: path, headers, ...(body !== undefined && { body }) }
    const reply = await this.kernel.needs.request(request, actor)
    // A request that fails before its handler leaves its entry behind. Undos are serialized, so no other entry is lost.
    this.#backs.clear()
    if (reply.status < 400) return this.#row(undone).undone_by ?? ''
    throw ChangeErrors.undo_refused(`${method} ${path}, which would undo it, is refused: ${errorIn(reply.body)}`)
  }

  /** The state at a path, limited to the part that the change touched; canonical JSON. */
  async #stateAt({ method, path, back }: ChangeRow, reads: string, actor: Actor): Promise<string | undefined> {
    const { state } = await this.#get(reads, actor)
    const route = this.#routes.at(method, path)
    const way = route && annotationOf(route, UndoKind)
    if (!route || !way) return undefined
    const core = this.#core(way, route, Object(JSON.parse(back ?? '{}')).body, state)
    return core === undefined ? undefined : canonicalJson(core)
  }

  #row(id: string): ChangeRow {
    const last = `SELECT seq FROM changes_change WHERE state <> 'undone' AND ${IS_KEPT} ORDER BY seq DESC LIMIT 1`
    const [seq] =
      (id === 'last'
        ? this.kernel.db.row(last)
        : this.kernel.db.row(`SELECT seq FROM changes_change WHERE id = ? AND ${IS_KEPT}`, [id])) ?? []
    const row = seq === undefined ? undefined : changes.get(this.kernel.db, { seq: Number(seq) })
    if (row) return row
    throw id === 'last'
      ? ChangeErrors.change_not_found('no change is recorded')
      : ChangeErrors.change_not_found(`no change ${shown(id)} is recorded`)
  }
}

/** The reply of a PATCH, if it contains every member of the request: then no second read is needed. */
function stateInReply(way: Undo, { request: { body }, before }: Pending, reply: unknown): unknown {
  if (way.by === 'custom') return way.after?.(reply, { body, before })
  if (way.by !== 'patch' || way.in !== undefined || way.of === '') return undefined
  const state = at(reply, way.of)
  if (typeof state !== 'object' || state === null) return undefined
  const names = Object.keys(Object(body))
  return names.every(name => Object(state)[name] !== undefined) ? reply : undefined
}

/** The event that shows whether a request changed something; undefined for a way that compares states. */
const toldOf = (way: Undo | undefined) => (way?.by === 'custom' ? way.event : undefined)

/** Code and message of an error reply. */
function errorIn(body: string): string {
  const { code, error } = Object(JSON.parse(body || '{}'))
  return [code, error].filter(part => typeof part === 'string').join(': ')
}

const whyNot = (route: Route): string => {
  const way = annotationOf(route, UndoKind)
  if (way === undefined) return 'no request can restore the former state'
  return way.by === 'never' ? way.why : 'the former state could not be read'
}

/** The members that are not null. */
const present = (members: Readonly<Record<string, unknown>>) =>
  Object.fromEntries(Object.entries(members).filter(([, value]) => value !== null))

/** Names of the members that a route's body accepts. */
function bodyNames(route: Route | undefined): readonly string[] {
  const { body } = route ?? {}
  return body && 'entries' in body ? Object.keys(body.entries as object) : []
}

/** The parameters of a query that a route knows, because the state of a workspace is read with the workspace of the change. */
function acceptedQuery(route: Route | undefined, query: string): string {
  const { query: schema } = route ?? {}
  const names = schema && 'entries' in schema ? Object.keys(schema.entries as object) : []
  const known = [...new URLSearchParams(query)].filter(([name]) => names.includes(name))
  return known.length === 0 ? '' : `?${new URLSearchParams(known)}`
}

/** A body as the handler would receive it. @throws Fault `plan_refused` */
function decodedBody({ body: schema, bodyOptional }: Route, body: unknown): unknown {
  if (!schema) return undefined
  if (!isSchema(schema))
    throw ChangeErrors.plan_refused('the body of this request is not JSON, so it cannot be planned')
  if (body === undefined && bodyOptional) return undefined
  const parsed = v.safeParse(schema, body ?? {})
  if (parsed.success) return parsed.output
  const [issue] = parsed.issues
  throw ChangeErrors.plan_refused(`body: ${issueLine(issue)}`)
}

/** Members that a request would change, judged by its body. */
function plannedMembers(route: Route, body: unknown, state: unknown): Plan['members'] {
  if (route.method === 'DELETE' || body === undefined) return []
  const way = annotationOf(route, UndoKind)
  const of = way && 'of' in way && way.by !== 'delete' ? way.of : guess(state, body)
  const within = way?.by === 'patch' ? way.in : undefined
  return differences(shaped(at(state, of), body, within), body)
}

/** Name of the reply member that shares the most members with a body; empty if the reply itself shares as many. */
function guess(state: unknown, body: unknown): string {
  const names = Object.keys(Object(body))
  const shared = (value: unknown) => Object.keys(pick(value, names)).length
  const [best] = Object.keys(Object(state)).sort((a, b) => shared(Object(state)[b]) - shared(Object(state)[a]))
  return best !== undefined && shared(Object(state)[best]) > shared(state) ? best : ''
}

function digestOf(method: string, path: string, body: unknown, state: unknown): string {
  const text = canonicalJson([method, path, body ?? null, lasting(state ?? null)])
  return createHash('sha256').update(text).digest('hex').slice(0, 32)
}
