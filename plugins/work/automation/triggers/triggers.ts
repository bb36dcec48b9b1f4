import { command } from '../../../../kernel/kit/commands/command-line.js'
import {
  type Actor,
  type Batch,
  Fault,
  type RecordChange,
  type StoredRecord,
  type Tx,
} from '../../../../kernel/plugin.js'
import type { CreateTriggerBody, FireLimit, PatchTriggerBody, Trigger } from '../../../../schemas/automation.js'
import { AutomationErrors } from '../api.js'
import { nameKey } from '../cursors.js'
import type { DefinitionReader } from '../definition-list.js'
import { Definitions, factsOf } from '../definitions.js'
import type { K } from '../needs.js'
import { Overlays } from '../overlays.js'
import { forgetPlaces } from '../runs/run-place.js'
import type { WebhookIds } from '../webhooks/webhook-ids.js'
import {
  decodeTrigger,
  secretPath,
  TriggerKind,
  type TriggerRecord,
  TriggerSpec,
  triggerProblem,
} from './trigger-kind.js'

/** Vault reference of a secret passed as `webhook_secret_value`. */
const secretOf = (id: string) => `vault:${secretPath(id)}`

/** Maximum number of cached lookups. */
const KEPT_PLACES = 1000

/** The triggers API: reads and writes trigger records. */
export class Triggers extends Definitions<TriggerSpec, Trigger> {
  /** Cache by event and workspace, cleared when a record changes: events are frequent, changes are rare. */
  readonly #about = new Map<string, readonly TriggerRecord[]>()
  /** Cache by webhook id, cleared likewise. */
  readonly #ofWebhook = new Map<string, TriggerRecord>()

  constructor(
    kernel: K,
    private readonly webhooks: WebhookIds,
    fireLimit: FireLimit,
  ) {
    const overlays = new Overlays(kernel, 'automation_trigger_overlay', TriggerKind.name)
    const disable = (id: string) => command('automation triggers update', id, '--no-enabled')
    const family = {
      noun: 'trigger' as const,
      disable,
      kind: TriggerKind,
      schema: TriggerSpec,
      problem: triggerProblem,
    }
    super(kernel, overlays, family, fireLimit)
  }

  create(actor: Actor, body: CreateTriggerBody, id = this.kernel.ids.id('trg')): Promise<Trigger> {
    const { webhook_secret_value: secret } = body
    return this.#keeping(id, secret, actor, () => this.insert(actor, id, body, this.#specOf(body, id)))
  }

  /** Throws the error that creating this trigger would fail with. */
  async judge(body: CreateTriggerBody): Promise<void> {
    await this.checked(body, this.#specOf(body, ''))
  }

  #specOf({ scope, workspace_id, webhook_secret_value: secret, ...rest }: CreateTriggerBody, id: string): object {
    const agent = rest.loop_target ? '' : this.kernel.needs.sessions.agentFor(workspace_id || undefined)
    return {
      ...rest,
      agent_name: rest.agent_name || agent,
      enabled: rest.enabled ?? true,
      ...(rest.event === 'webhook' ? { webhook_id: rest.webhook_id || this.webhooks.make() } : {}),
      ...(secret === undefined ? {} : { webhook_secret_ref: secretOf(id) }),
    }
  }

  override patch(actor: Actor, id: string, body: PatchTriggerBody): Promise<Trigger> {
    const { webhook_secret_value: secret, ...rest } = body
    if (secret === undefined || secret === null) return super.patch(actor, id, rest)
    this.find(id)
    return this.#keeping(id, secret, actor, () => super.patch(actor, id, { ...rest, webhook_secret_ref: secretOf(id) }))
  }

  /** Triggers on an event in a workspace, or global ones, enabled or not; in ascending id order. */
  about(event: string, workspaceId: string | undefined): readonly TriggerRecord[] {
    const key = `${workspaceId ?? ''} ${event}`
    const known = this.#about.get(key)
    if (known) return known
    const scope = workspaceId === undefined ? { kind: 'global' } : { kind: 'workspace', id: workspaceId }
    const found = this.kernel.records
      .list({ kind: TriggerKind.name, scope, members: { event } })
      .flatMap(record => decodeTrigger(record) ?? [])
      .sort((a, b) => (a.id < b.id ? -1 : 1))
    if (this.#about.size >= KEPT_PLACES) this.#about.clear()
    this.#about.set(key, found)
    return found
  }

  /** Triggers on an event, in all scopes, enabled or not. */
  ofEvent(event: string): readonly TriggerRecord[] {
    return this.kernel.records
      .list({ kind: TriggerKind.name, members: { event } })
      .flatMap(record => decodeTrigger(record) ?? [])
  }

  /** The trigger of a webhook, enabled or not. */
  ofWebhook(webhookId: string): TriggerRecord | undefined {
    const known = this.#ofWebhook.get(webhookId)
    if (known) return known
    const id = this.webhooks.trigger(webhookId)
    const found = id === undefined ? undefined : decodeTrigger(this.kernel.records.get(TriggerKind.name, id))
    if (found) {
      if (this.#ofWebhook.size >= KEPT_PLACES) this.#ofWebhook.clear()
      this.#ofWebhook.set(webhookId, found)
    }
    return found
  }

  /** Clears the caches. */
  #forget(): void {
    this.#about.clear()
    this.#ofWebhook.clear()
  }

  /** Assigns webhook ids and cleans up after deleted triggers. */
  async reconcile(batch: Batch<TriggerSpec>): Promise<void> {
    // Also needed after the commit: a lookup may have cached a record of a failed transaction.
    this.#forget()
    await this.kernel.db.tx(t => {
      forgetPlaces(t, batch.removed)
      for (const id of batch.removed) {
        this.webhooks.remove(t, id)
        this.overlays.remove(t, id)
      }
      for (const record of batch.records) {
        const problem = triggerProblem(record.spec, record.scope)
        if (problem) batch.fail(record.id, new Error(problem.text))
        else this.webhooks.project(t, record)
      }
    })
    // A concurrent delivery may have cached the previous webhook id.
    this.#ofWebhook.clear()
    for (const record of batch.records) this.projected(record)
  }

  /** Whether the trigger is enabled, with its overlay applied. */
  enabled(record: TriggerRecord): boolean {
    return this.overlays.enabled(record)
  }

  removeOrphans(t: Tx): void {
    this.overlays.removeOrphans(t)
  }

  /** Totals for the status, with overlays applied. */
  totals(): { readonly total: number; readonly enabled: number } {
    const { records } = this.kernel
    let enabled = records.count({ kind: TriggerKind, members: { enabled: true } })
    const switched = this.overlays.all()
    for (const record of records.getAll(TriggerKind.name, [...switched.keys()])) {
      const trigger = this.decode(record)
      if (trigger) enabled += Number(switched.get(record.id)) - Number(trigger.spec.enabled)
    }
    return { total: records.count({ kind: TriggerKind }), enabled }
  }

  /** Reader for one list request. */
  reader(): DefinitionReader<ReturnType<typeof factsOf> & Pick<Trigger, 'event' | 'filter'>, Trigger> {
    const overlays = this.overlays.all()
    return {
      facts: stored => {
        const record = this.decode(stored)
        return record && this.#facts(record, this.overlays.enabled(record, overlays))
      },
      wire: id => {
        const record = this.decode(this.kernel.records.get(TriggerKind.name, id))
        return record && this.toWire(record)
      },
      searched: ({ event, filter }) => [event, ...Object.entries(filter ?? {}).flat()],
    }
  }

  /** The wire form of a trigger. */
  toWire(record: TriggerRecord): Trigger {
    const { spec } = record
    const webhookId = spec.event === 'webhook' ? this.webhooks.of(record.id) : undefined
    return {
      ...this.#facts(record, this.enabled(record)),
      ...this.common(record),
      webhook_secret_present: Boolean(spec.webhook_secret_ref),
      ...(spec.endpoint_slug ? { endpoint_slug: spec.endpoint_slug } : {}),
      ...(spec.webhook_secret_ref ? { webhook_secret_ref: spec.webhook_secret_ref } : {}),
      ...(spec.webhook_allow_repeat ? { webhook_allow_repeat: true } : {}),
      ...(spec.event === 'webhook' ? { webhook_scheme: spec.webhook_scheme ?? 'service' } : {}),
      ...(webhookId ? { webhook_id: webhookId, webhook_endpoint: endpointOf(record, webhookId) } : {}),
    }
  }

  /** Also refuses a duplicate name or `webhook_id`. */
  override guard(change: RecordChange): Fault | undefined {
    this.#forget()
    const fault = super.guard(change)
    if (fault || change.verb !== 'put') return fault
    const { id, spec } = change.after
    // Earlier versions let packages create duplicate names: such a trigger keeps its name.
    const isNamed = change.before !== undefined && nameKey(change.before) === nameKey(change.after)
    const taken = isNamed ? undefined : this.nameTaken(change.after)
    if (taken) return taken
    const webhookId = (spec as TriggerSpec).webhook_id
    if (!webhookId) return undefined
    const [other] = [
      ...this.kernel.records
        .list({ kind: TriggerKind.name, members: { webhook_id: webhookId } })
        .map(found => found.id),
      this.webhooks.trigger(webhookId) ?? id,
    ].filter(found => found !== id)
    return other === undefined
      ? undefined
      : AutomationErrors.webhook_id_taken(`webhook_id ${webhookId} is already in use by trigger ${other}`)
  }

  protected named(_key: string, { spec, scope }: Pick<StoredRecord, 'scope' | 'spec'>): readonly string[] {
    const { name } = spec as TriggerSpec
    return this.kernel.records.list({ kind: TriggerKind.name, scope, members: { name } }).map(({ id }) => id)
  }

  #facts(record: TriggerRecord, enabled: boolean) {
    const { event, filter } = record.spec
    return { ...factsOf(record, enabled), event, ...(filter ? { filter } : {}) }
  }

  /** Stores the secret before the trigger, which requires it; restores the previous secret when the write fails. */
  async #keeping<T>(id: string, secret: string | undefined, actor: Actor, write: () => Promise<T>): Promise<T> {
    if (secret === undefined) return write()
    const vault = this.kernel.needs.vault.current
    if (!vault) throw AutomationErrors.webhook_vault_missing()
    const ref = secretOf(id)
    const before = await vault.reveal(ref)
    await vault.put(ref, secret, { kind: 'webhook_secret', actor }).catch(error => {
      // Replace the hint of the vault, which is about `svc vault put`.
      const next = 'pass a longer webhook_secret_value'
      throw error instanceof Fault ? new Fault(error.code, error.status, error.message, { next }) : error
    })
    try {
      return await write()
    } catch (error) {
      if (before === undefined) await vault.delete(ref, actor)
      else await vault.put(ref, before, { kind: 'webhook_secret', allowShort: true, actor })
      throw error
    }
  }
}

/** The path to POST deliveries to. */
function endpointOf({ scope, spec }: TriggerRecord, webhookId: string): string {
  const where = scope.id === undefined ? 'global' : `workspaces/${scope.id}`
  return `/api/webhooks/${where}/${spec.endpoint_slug ? `${spec.endpoint_slug}--` : ''}${webhookId}`
}
