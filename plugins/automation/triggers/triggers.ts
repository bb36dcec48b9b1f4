import { type Actor, type Batch, Fault, type RecordChange, type StoredRecord, type Tx } from '../../../kernel/plugin.js'
import type { CreateTriggerBody, FireLimit, PatchTriggerBody, Trigger } from '../../../schemas/automation.js'
import type { VaultApi } from '../../vault/api.js'
import { AutomationErrors } from '../api.js'
import { nameKey } from '../cursors.js'
import type { DefinitionReader } from '../definition-list.js'
import { type DefinitionKernel, Definitions, factsOf } from '../definitions.js'
import { Overlays } from '../overlays.js'
import type { WebhookIds } from '../webhooks/webhook-ids.js'
import { decodeTrigger, TriggerKind, type TriggerRecord, TriggerSpec, triggerProblem } from './trigger-kind.js'

/** Where the vault keeps the secret that was given with a trigger. */
const secretOf = (id: string) => `vault:automation/triggers/${id}`

/** Events and places of which it is kept which triggers are about them. */
const KEPT_PLACES = 1000

/** The triggers API: reads and writes the triggers' records. */
export class Triggers extends Definitions<TriggerSpec, Trigger> {
  /** By event and workspace, what was looked up since a record changed: events come by the hundred, triggers do not. */
  readonly #about = new Map<string, readonly TriggerRecord[]>()
  /** By the id of its webhook, likewise. */
  readonly #ofWebhook = new Map<string, TriggerRecord>()

  constructor(
    kernel: DefinitionKernel,
    private readonly webhooks: WebhookIds,
    private readonly vault: { readonly current?: VaultApi | undefined },
    fireLimit: FireLimit,
  ) {
    const overlays = new Overlays(kernel, 'automation_trigger_overlay', TriggerKind.name)
    const disable = (id: string) => `svc automation triggers update ${id} --no-enabled`
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

  /** Throws what a request for such a trigger is refused with. */
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

  /** Those of an event in a workspace, or in none, whether enabled or not; in the order of their ids. */
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

  /** The trigger that deliveries to this webhook are for, whether enabled or not. */
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

  /** What was looked up may be otherwise now. */
  #forget(): void {
    this.#about.clear()
    this.#ofWebhook.clear()
  }

  /** Assigns webhooks their ids; forgets what belongs to triggers that are gone. */
  async reconcile(batch: Batch<TriggerSpec>): Promise<void> {
    // Also after the commit: what was looked up before may be of one that failed.
    this.#forget()
    await this.kernel.db.tx(t => {
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
    // What came meanwhile saw the ids of webhooks as they were.
    this.#ofWebhook.clear()
    for (const record of batch.records) this.projected(record)
    for (const id of batch.removed) await this.vault.current?.delete(secretOf(id))
  }

  /** Is it enabled, the switch of one that is read-only applied? */
  enabled(record: TriggerRecord): boolean {
    return this.overlays.enabled(record)
  }

  removeOrphans(t: Tx): void {
    this.overlays.removeOrphans(t)
  }

  /** Totals for the status, switches applied. */
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

  /** For one list. */
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

  /** A trigger as the contract has it. */
  toWire(record: TriggerRecord): Trigger {
    const { spec } = record
    const webhookId = spec.event === 'webhook' ? this.webhooks.of(record.id) : undefined
    return {
      ...this.#facts(record, this.enabled(record)),
      ...this.common(record),
      webhook_secret_present: Boolean(spec.webhook_secret_ref),
      ...(spec.endpoint_slug ? { endpoint_slug: spec.endpoint_slug } : {}),
      ...(spec.webhook_secret_ref ? { webhook_secret_ref: spec.webhook_secret_ref } : {}),
      ...(spec.event === 'webhook' ? { webhook_scheme: spec.webhook_scheme ?? 'service' } : {}),
      ...(webhookId ? { webhook_id: webhookId, webhook_endpoint: endpointOf(record, webhookId) } : {}),
    }
  }

  /** Refuses also a name, and a `webhook_id`, that another trigger has. */
  override guard(change: RecordChange): Fault | undefined {
    this.#forget()
    const fault = super.guard(change)
    if (fault || change.verb !== 'put') return fault
    const { id, spec } = change.after
    // Earlier versions let packages write equal names: such a trigger keeps its own.
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
    return other === undefined ? undefined : AutomationErrors.webhook_id_taken(`trigger ${other} has this webhook_id`)
  }

  protected named(_key: string, { spec, scope }: Pick<StoredRecord, 'scope' | 'spec'>): readonly string[] {
    const { name } = spec as TriggerSpec
    return this.kernel.records.list({ kind: TriggerKind.name, scope, members: { name } }).map(({ id }) => id)
  }

  #facts(record: TriggerRecord, enabled: boolean) {
    const { event, filter } = record.spec
    return { ...factsOf(record, enabled), event, ...(filter ? { filter } : {}) }
  }

  /** Stores a secret first, for a trigger without one is none; what was there before is put back when the write fails. */
  async #keeping<T>(id: string, secret: string | undefined, actor: Actor, write: () => Promise<T>): Promise<T> {
    if (secret === undefined) return write()
    const vault = this.vault.current
    if (!vault) throw AutomationErrors.webhook_vault_missing()
    const ref = secretOf(id)
    const before = await vault.reveal(ref)
    await vault.put(ref, secret, { kind: 'webhook_secret', actor }).catch(error => {
      // The advice of the vault is about another command.
      const next = 'use a longer secret'
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

/** The path that deliveries to a trigger are posted to. */
function endpointOf({ scope, spec }: TriggerRecord, webhookId: string): string {
  const where = scope.id === undefined ? 'global' : `workspaces/${scope.id}`
  return `/api/webhooks/${where}/${spec.endpoint_slug ? `${spec.endpoint_slug}--` : ''}${webhookId}`
}
