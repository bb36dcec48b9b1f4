import * as v from 'valibot'
import { command } from '../../../kernel/kit/commands/command-line.js'
import { Paging } from '../../../kernel/kit/page.js'
import {
  type Actor,
  type Handled,
  type Identified,
  KernelErrors,
  type Route,
  type Tx,
  type Written,
} from '../../../kernel/plugin.js'
import type { AuditQuery, AuditReply, VerifyAuditReply, WhyReply } from '../../../schemas/daemon/audit.js'
import type { StoredEvent } from '../events/api.js'
import { AuditedEvents } from './api.js'
import { Chain } from './chain.js'
import { digestOf, entryToWire, type NewEntry } from './entry.js'
import type { K } from './needs.js'
import { namesOf } from './request-names.js'
import { whyOf } from './why.js'

/** Families of events (the part before the first dot) that are changes of the control plane. */
const FAMILIES: ReadonlySet<string> = new Set([
  'auth',
  'config',
  'daemon',
  'extension',
  'permission',
  'plugin',
  'settings',
  'vault',
  'workspace',
])
/** Number of recent requests kept by id, so that entries can name the request that caused them. */
const REMEMBERED = 1000
const DEFAULT_LIMIT = 50
const PRUNE_MS = 3_600_000
/** Maximum characters of the subject of a request. */
const SUBJECT = 500
const paging = new Paging({
  place: v.pipe(v.number(), v.safeInteger()),
  invalid: () => KernelErrors.invalid_cursor(undefined, { next: command('audit list') }),
})

const UNKNOWN_WRITER = { kind: 'daemon', id: 'configuration', origin: 'file' }

/** Key of the digests, and the last recorded digest of the configuration file. */
interface State {
  readonly key: string
  readonly config: string | null
}

/** Records changes, in the transaction of the change. */
export class AuditService {
  readonly #chain: Chain
  /** By request id, the oldest first. */
  readonly #requests = new Map<string, { readonly request: string; hasEntry: boolean }>()
  #audited: ReadonlySet<string> = new Set()
  #state: State = { key: '', config: null }

  constructor(private readonly kernel: K) {
    this.#chain = new Chain(kernel.db)
  }

  async start(): Promise<void> {
    const { db, ids } = this.kernel
    const stored = db.get<State>('SELECT key, config FROM audit_state')
    this.#state = stored ?? { key: ids.hex(32), config: null }
    if (!stored) await db.tx(t => t.run('INSERT INTO audit_state (one, key) VALUES (1, ?)', [this.#state.key]))
    // The file may have been edited while no daemon ran.
    await this.configured()
  }

  /** Kinds and registries of a change are set. */
  known(): void {
    this.#audited = new Set(this.kernel.collect(AuditedEvents).map(({ entry }) => entry))
  }

  /** A request is about to be served. */
  admit({ id, method }: Identified, { path }: Route): undefined {
    if (method === 'GET' || method === 'HEAD') return
    this.#requests.set(id, { request: `${method} ${path}`, hasEntry: false })
    if (this.#requests.size <= REMEMBERED) return
    const [oldest] = this.#requests.keys()
    this.#requests.delete(oldest as string)
  }

  /**
   * A request succeeded. If it changed the control plane without an audited event or record change, it gets an entry of its own.
   * The entry is on disk before the reply.
   */
  handled({ id, actor, route, params, body }: Handled): Promise<void> | undefined {
    if (route.audited === false || this.#requests.get(id)?.hasEntry) return undefined
    const names = namesOf(route, params, body)
    // A path may contain a secret that the caller put there.
    const [action, subject] = [names.action, this.kernel.redact.text(names.subject, SUBJECT)]
    return this.kernel.db.tx(t => this.#append(t, { ...actor, cause: actor.cause ?? id }, { action, subject }))
  }

  /** A record was written; its transaction is open. */
  written(t: Tx, { change, event }: Written): void {
    const { verb, actor, before } = change
    const after = verb === 'put' ? change.after : undefined
    const { kind, id, version } = after ?? (change.before as NonNullable<typeof before>)
    this.#append(t, actor, {
      action: verb === 'put' ? 'record.put' : 'record.deleted',
      subject: `${kind}/${id}`,
      version,
      event,
      before: before && this.#digest(before),
      after: after && this.#digest(after),
    })
  }

  /** An event was appended; its transaction is open. */
  onEvent(t: Tx, event: StoredEvent): undefined {
    const { name } = event
    if (!FAMILIES.has(name.slice(0, name.indexOf('.'))) && !this.#audited.has(name)) return
    const { id, subject, actor, cause, payload } = event
    this.#append(
      t,
      { ...actor, ...(cause && { cause }) },
      {
        action: name,
        subject: subject ?? '',
        event: id,
        after: digestOf(this.#state.key, payload),
        on_behalf_of: actor.on_behalf_of,
      },
    )
  }

  /** The configuration file may have changed. The author of an edit with an editor is unknown. */
  async configured(): Promise<void> {
    const after = digestOf(this.#state.key, this.kernel.needs.configuration.text)
    const { config: before } = this.#state
    const actor = this.kernel.needs.configuration.writer ?? UNKNOWN_WRITER
    if (before === after) return
    this.#state = { ...this.#state, config: after }
    await this.kernel.db.tx(t => {
      t.run('UPDATE audit_state SET config = ?', [after])
      const entry = { action: 'config.changed', subject: 'config.json', before: before ?? undefined, after }
      this.#append(t, actor, entry)
    })
  }

  /** Prunes entries that are too old, now and every hour. */
  async retain(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      while (!signal.aborted && (await this.kernel.db.tx(t => this.#chain.prune(t, this.kernel.clock.now()))));
      await this.kernel.clock.sleep(PRUNE_MS, signal).catch(() => {})
    }
  }

  /** @throws Fault `invalid_cursor` */
  list(query: AuditQuery): AuditReply {
    const { actor, action, subject, since, limit = DEFAULT_LIMIT } = query
    const filter = { actor, action, subject, since: since === undefined ? undefined : Date.parse(since) }
    const behind = paging.after({ query }, query.cursor)
    const rows = this.#chain.page(filter, limit + 1, behind)
    const { rows: page, ...more } = paging.cut({ query }, rows, limit, ({ seq }) => seq)
    return { entries: page.map(entryToWire), page: { limit, total: this.#chain.count(filter), ...more } }
  }

  verify(expect?: string): Promise<VerifyAuditReply> {
    return this.#chain.verify(expect)
  }

  /** @throws Fault `why_not_found` */
  why(id: string): Promise<WhyReply> {
    return whyOf(id, this.#chain, this.kernel.needs.events)
  }

  /** Digest of the desired state of a record, without version, times and registered secrets. */
  #digest({ scope, owner, spec }: NonNullable<Written['change']['before']>): string {
    // Members are listed in sorted order, so that no sorting is needed: every change of a record pays for it.
    const scopeInOrder = 'id' in scope ? { id: scope.id, kind: scope.kind } : scope
    const inOrder = { owner: { id: owner.id, kind: owner.kind }, scope: scopeInOrder, spec }
    return digestOf(this.#state.key, this.kernel.redact.value(inOrder))
  }

  // Every member is listed, because a spread would cost more than the rest of this call, which each change of a record
  // makes.
  #append(t: Tx, actor: Acting, entry: Partial<NewEntry> & Pick<NewEntry, 'action' | 'subject'>): void {
    const { cause, onBehalfOf } = actor
    const known = cause === undefined ? undefined : this.#requests.get(cause)
    if (known) known.hasEntry = true
    this.#chain.append(t, {
      at: this.kernel.clock.now(),
      action: entry.action,
      subject: entry.subject,
      version: entry.version,
      actor_kind: actor.kind,
      actor_id: actor.id,
      origin: actor.origin,
      cause,
      request: known?.request,
      event: entry.event,
      before: entry.before,
      after: entry.after,
      on_behalf_of: entry.on_behalf_of ?? (onBehalfOf && `${onBehalfOf.kind}/${onBehalfOf.id}`),
    })
  }
}

/** The author of an audited change. */
type Acting = Pick<Actor, 'id' | 'origin' | 'cause' | 'onBehalfOf'> & { readonly kind: string }
