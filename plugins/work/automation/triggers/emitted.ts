import { TokenBucket } from '../../../../kernel/kit/rate.js'
import { shown } from '../../../../kernel/kit/text.js'
import { type Actor, iso, type Tx } from '../../../../kernel/plugin.js'
import type { EmitEventBody } from '../../../../schemas/automation.js'
import type { InstalledExtension, ResourceFamily } from '../../../delivery/extensions/api.js'
import { WorkspaceErrors } from '../../../desk/workspaces/api.js'
import type { HookRun } from '../../hooks/api.js'
import { SessionCreated } from '../../sessions/api.js'
import { AutomationErrors, type ExtensionEvent, Observation } from '../api.js'
import type { K } from '../needs.js'
import { sessionData } from './observed.js'
import { TriggerKind } from './trigger-kind.js'

/** Maximum size of the event data as JSON. */
const DATA_BYTES = 64 * 1024
/** Rate limit per extension. */
const RATE = { burst: 100, perSecond: 10 }

/** An extension that declares events. */
interface Emitter {
  readonly events: ReadonlySet<string>
  /** Limits the extension to one workspace. */
  readonly workspace?: string | undefined
  readonly bucket: TokenBucket
}

/** Writes emitted events to the event log, from which triggers read them with a durable cursor. */
export class EmittedEvents {
  readonly #emitters = new Map<string, Emitter>()

  constructor(private readonly kernel: K) {}

  /** Reads `[resources] events` of extension manifests. */
  readonly family: ResourceFamily = {
    name: 'events',
    load: extension => ({
      items: extension.manifest.resources.events.map(event => {
        const name = fullName(extension.name, event)
        return { kind: 'event', id: name, name, live: true }
      }),
      brings: extension.manifest.resources.events.map(event => ({
        kind: 'event',
        name: fullName(extension.name, event),
        about: 'may start triggers',
      })),
      taken: () => this.#declare(extension),
    }),
    unload: key => void this.#emitters.delete(key),
  }

  /**
   * Emits an event on behalf of an extension, by its key or name. Throws 403 `event_undeclared`, 404
   * `workspace_not_found`, 413 `event_too_large`, 429 `event_rate`.
   */
  emit(t: Tx, extension: string, { event, workspaceId, data = {}, cause }: ExtensionEvent): { readonly id: string } {
    const emitter = this.#emitters.get(extension)
    if (!emitter?.events.has(event)) {
      const says = (emitter && [...emitter.events].join(', ')) || 'none'
      throw AutomationErrors.event_undeclared(
        `extension ${extension} does not declare ${shown(event)}; declared: ${says}`,
      )
    }
    const targetWorkspace = workspaceId ?? emitter.workspace
    if (
      targetWorkspace !== undefined &&
      (targetWorkspace !== (emitter.workspace ?? targetWorkspace) || !this.kernel.needs.workspaces.get(targetWorkspace))
    )
      throw WorkspaceErrors.workspace_not_found(
        `workspace not found, or not accessible to extension ${extension}: ${shown(targetWorkspace)}`,
      )
    const text = JSON.stringify(data)
    if (Buffer.byteLength(text) > DATA_BYTES)
      throw AutomationErrors.event_too_large(`the data of ${event} is larger than ${DATA_BYTES} bytes`)
    if (!emitter.bucket.tryTake(1)) throw AutomationErrors.event_rate(undefined, { retryAfter: 1 })
    // A copy, so that later changes by the caller have no effect.
    const payload = { event, source: 'extension' as const, data: JSON.parse(text) }
    return this.kernel.needs.events.emit(t, Observation, payload, {
      actor: { kind: 'extension', id: extension, origin: 'extension' },
      subject: event,
      ...(targetWorkspace === undefined ? {} : { scope: targetWorkspace }),
      ...(cause === undefined ? {} : { cause }),
    })
  }

  /** Handles an emit request. Throws 403 `event_foreign` unless the caller is an extension. */
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

  /** Logs a hook completion, but only when a trigger uses the event. */
  completed(t: Tx, run: HookRun): void {
    const event = `hook.${run.hook}.completed`
    const { records, needs } = this.kernel
    if (records.count({ kind: TriggerKind, members: { event } }) === 0) return
    const session = needs.sessions.get(run.sessionId)
    // The session.created event links the session to the trigger run that created it.
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

/** A single segment after the extension name, so that event names of two extensions never collide. */
const fullName = (extension: string, event: string) => `ext.${extension}.${event}`
