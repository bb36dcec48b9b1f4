import { TokenBucket } from '../../../kernel/kit/rate.js'
import { shown } from '../../../kernel/kit/text.js'
import { type Actor, iso, type PluginKernel, type Tx } from '../../../kernel/plugin.js'
import type { EmitEventBody } from '../../../schemas/automation.js'
import type { Events } from '../../events/api.js'
import type { InstalledExtension, ResourceFamily } from '../../extensions/api.js'
import { SessionCreated, type Sessions } from '../../sessions/api.js'
import { WorkspaceErrors, type Workspaces } from '../../workspaces/api.js'
import { AutomationErrors, type ExtensionEvent, type HookCompletion, Observation } from '../api.js'
import { sessionData } from './observed.js'
import { TriggerKind } from './trigger-kind.js'

/** Bytes of what one event says, as JSON. */
const DATA_BYTES = 64 * 1024
/** Events of one extension. */
const RATE = { burst: 100, perSecond: 10 }

type Kernel = PluginKernel<{ events: typeof Events; sessions: typeof Sessions; workspaces: typeof Workspaces }>

/** An extension with events of its own. */
interface Emitter {
  readonly events: ReadonlySet<string>
  /** Only there; absent: everywhere. */
  readonly workspace?: string | undefined
  readonly bucket: TokenBucket
}

/** Writes what others tell triggers of into the log of events, from which it comes back by a durable cursor. */
export class EmittedEvents {
  readonly #emitters = new Map<string, Emitter>()

  constructor(private readonly kernel: Kernel) {}

  /** How the manifests of extensions say which events they have. */
  readonly family: ResourceFamily = {
    name: 'events',
    load: extension => ({
      items: extension.manifest.resources.events.map(event => {
        const name = fullName(extension.name, event)
        return { kind: 'event', id: name, name, live: true }
      }),
      taken: () => this.#declare(extension),
    }),
    unload: key => void this.#emitters.delete(key),
  }

  /**
   * Tells triggers of something on behalf of an extension, by its key or name. Throws 403 `event_undeclared`, 404
   * `workspace_not_found`, 413 `event_too_large`, 429 `event_rate`.
   */
  emit(t: Tx, extension: string, { event, workspaceId, data = {}, cause }: ExtensionEvent): { readonly id: string } {
    const emitter = this.#emitters.get(extension)
    if (!emitter?.events.has(event)) {
      const says = emitter ? [...emitter.events].join(', ') : 'none'
      throw AutomationErrors.event_undeclared(`${extension} declares ${says}, and not ${shown(event)}`)
    }
    const place = workspaceId ?? emitter.workspace
    if (place !== undefined && (place !== (emitter.workspace ?? place) || !this.kernel.needs.workspaces.get(place)))
      throw WorkspaceErrors.workspace_not_found(`no workspace ${shown(place)} that ${extension} could tell of`)
    const text = JSON.stringify(data)
    if (Buffer.byteLength(text) > DATA_BYTES)
      throw AutomationErrors.event_too_large(`the data of ${event} has more than ${DATA_BYTES} bytes`)
    if (!emitter.bucket.tryTake(1)) throw AutomationErrors.event_rate(undefined, { retryAfter: 1 })
    // A copy: what the caller does to its object afterwards is not part of it.
    const payload = { event, source: 'extension' as const, data: JSON.parse(text) }
    return this.kernel.needs.events.emit(t, Observation, payload, {
      actor: { kind: 'extension', id: extension, origin: 'extension' },
      subject: event,
      ...(place === undefined ? {} : { scope: place }),
      ...(cause === undefined ? {} : { cause }),
    })
  }

  /** The same as a request. Throws 403 `event_foreign` for who is no extension. */
  async request({ owner, origin }: Actor, body: EmitEventBody): Promise<{ readonly id: string }> {
    if (origin !== 'extension' || owner?.kind !== 'extension') throw AutomationErrors.event_foreign()
    const { event, workspace_id: workspaceId, data, cause } = body
    return this.kernel.db.tx(t =>
      this.emit(t, owner.id, {
        event,
        ...(workspaceId === undefined ? {} : { workspaceId }),
        ...(data === undefined ? {} : { data }),
        ...(cause === undefined ? {} : { cause }),
      }),
    )
  }

  /** A hook was run. It goes into the log only when a trigger is about it: most hooks are nobody's business. */
  completed(t: Tx, run: HookCompletion): void {
    const event = `hook.${run.hook}.completed`
    const { records, needs } = this.kernel
    if (records.count({ kind: TriggerKind, members: { event } }) === 0) return
    const session = needs.sessions.get(run.sessionId)
    // What a session does follows from what made it: a run of a trigger has its session only once that is there.
    const made = session && needs.events.latest({ name: SessionCreated.name, subject: session.id })
    const cause = run.cause ?? made?.id
    const data = {
      ...(session && sessionData(session, needs.workspaces.get(session.workspaceId))),
      hook_name: run.hook,
      event: run.event,
      source: run.source,
      mode: run.mode,
      outcome: run.outcome,
      dispatch_depth: String(run.depth),
      required: String(run.required),
      recorded_at: iso(run.at),
      error: run.error ?? '',
    }
    needs.events.emit(
      t,
      Observation,
      { event, source: 'hook', data },
      {
        subject: event,
        ...(session ? { actor: { kind: 'session', id: session.id } } : {}),
        ...(run.workspaceId === '' ? {} : { scope: run.workspaceId }),
        ...(cause === undefined ? {} : { cause }),
      },
    )
  }

  #declare({ key, name, workspace, manifest }: InstalledExtension): void {
    this.#emitters.set(key, {
      workspace,
      events: new Set(manifest.resources.events.map(event => fullName(name, event))),
      bucket: this.#emitters.get(key)?.bucket ?? new TokenBucket(RATE, this.kernel.clock),
    })
  }
}

/** One segment behind the name of the extension: no name of one extension can be that of another. */
const fullName = (extension: string, event: string) => `ext.${extension}.${event}`
