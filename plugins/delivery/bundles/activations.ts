import { command } from '../../../kernel/kit/commands/command-line.js'
import { Serial } from '../../../kernel/kit/serial.js'
import { shown } from '../../../kernel/kit/text.js'
import {
  type Actor,
  iso,
  KernelErrors,
  operator,
  type RecordScope,
  type StoredRecord,
  type Tx,
} from '../../../kernel/plugin.js'
import type { BundleActivation, BundleActivationPatch, BundleActivationRequest } from '../../../schemas/bundles.js'
import type { BundleCatalog } from './catalog.js'
import { BundleErrors } from './errors.js'
import { derivedId } from './ids.js'
import { ActivationKind, type ActivationSpec } from './kinds.js'
import type { LoadedBundle, LoadedProfile } from './load.js'
import type { K } from './needs.js'
import { type Found, Projection } from './projection.js'
import { exists, outdated, unconfirmed, unconfirmedUpdate } from './refusals.js'
import { undone } from './transactions.js'
import { activationToWire, diagnosticsOf } from './view.js'
import { conflict, overlaps, VisibleAgents } from './visible-agents.js'

export type Activation = StoredRecord<ActivationSpec>

/** Milliseconds that a reply waits for the reconcilers to apply the written records. */
const SETTLE_MS = 5000

/** Active profiles: an activation and all its projected records are written in one transaction. */
export class Activations {
  readonly #projection: Projection
  readonly #visible: VisibleAgents
  /** Serializes changes: a check must still hold when its result is written. */
  readonly #exclusive = new Serial()

  constructor(
    private readonly kernel: K,
    private readonly catalog: BundleCatalog,
  ) {
    this.#visible = new VisibleAgents(kernel)
    this.#projection = new Projection(kernel, this.#visible)
  }

  /** The valid activations, by id. */
  list(): Activation[] {
    return this.kernel.records.list({ kind: ActivationKind })
  }

  /** Names of the jobs and triggers that would be new if the activations took these versions of the bundles. */
  starting(bundles: readonly LoadedBundle[]): string[] {
    return this.list().flatMap(({ id, spec }) => {
      const bundle = bundles.find(one => alike(one.extension, spec.extension_name) && alike(one.name, spec.bundle_name))
      const profile = bundle?.profiles.find(one => alike(one.name, spec.profile_name))
      if (!bundle || !profile) return []
      const missing = (kind: 'automation.job' | 'automation.trigger', names: LoadedProfile['jobs']) =>
        names.flatMap(({ name }) => (this.kernel.records.get(kind, derivedId(kind, id, name)) ? [] : [name]))
      const names = [...missing('automation.job', profile.jobs), ...missing('automation.trigger', profile.triggers)]
      return names.map(name => [bundle.extension, bundle.name, profile.name, name].join('/'))
    })
  }

  /** @throws Fault `bundle_activation_not_found`; `invalid_spec` when the stored record is not valid */
  get(id: string): Activation {
    const record = this.kernel.records.get(ActivationKind, id)
    if (record) return record
    throw notFound(id)
  }

  /** Shows an activation before it is made: the transaction runs in full and is rolled back. */
  async preview(request: BundleActivationRequest, actor: Actor): Promise<BundleActivation> {
    const scope = await this.#scope(request)
    return this.#exclusive.run(async () => {
      const found = this.catalog.find(request)
      const id = activationId(found, scope)
      await this.#check(id, found, scope)
      return undone(this.kernel.db, t => {
        const before = this.kernel.records.get(ActivationKind, id)
        const record =
          before ?? this.#write(t, actor, id, scope, this.#spec(found, request.confirm_network_requirement), 0)
        this.#projection.apply(t, record, found)
        return activationToWire(record, this.#projection.owned(id), found)
      })
    })
  }

  /**
   * @throws Fault `bundle_activation_exists`, `bundle_confirmation_required`, `bundle_agent_conflict` (409) and others
   *   (404, 422)
   */
  async activate(request: BundleActivationRequest, actor: Actor): Promise<BundleActivation> {
    const scope = await this.#scope(request)
    const record = await this.#exclusive.run(async () => {
      const found = this.catalog.find(request)
      const id = activationId(found, scope)
      const before = this.kernel.records.get(ActivationKind.name, id)
      if (before) throw exists(before)
      if (found.bundle.requirement !== '' && !request.confirm_network_requirement) throw unconfirmed(found, request)
      await this.#check(id, found, scope)
      return this.kernel.db.tx(t => {
        this.#unchanged(found)
        const spec = this.#spec(found, request.confirm_network_requirement)
        const made = this.#write(t, actor, id, scope, spec, 0)
        this.#projection.apply(t, made, found, actor.cause)
        return made
      })
    })
    return this.#settledView(record.id)
  }

  /** Projects the current profile, and records the confirmation of its network requirement. */
  async update(id: string, patch: BundleActivationPatch, actor: Actor): Promise<BundleActivation> {
    const { expected_version: expected, confirm_network_requirement: confirm } = patch
    if (expected <= 0) throw KernelErrors.invalid_version('expected_version is the version of the activation, from 1')
    await this.#exclusive.run(async () => {
      const before = this.get(id)
      if (before.version !== expected) throw outdated(before, expected)
      const found = this.catalog.find(before.spec)
      const { requirement } = found.bundle
      const spec = this.#spec(found, confirm, before.spec)
      if (requirement !== '' && spec.confirmed_by === undefined) throw unconfirmedUpdate(before)
      await this.#check(id, found, before.scope)
      return this.kernel.db.tx(t => {
        this.#unchanged(found)
        const now = this.get(id)
        if (now.version !== expected) throw outdated(now, expected)
        const written = this.#write(t, actor, id, before.scope, spec, expected)
        this.#projection.apply(t, written, found, actor.cause)
      })
    })
    return this.#settledView(id)
  }

  /** Removes an activation and exactly the records that it projected. */
  async remove(id: string, actor: Actor): Promise<void> {
    const keys = await this.#exclusive.run(() =>
      this.kernel.db.tx(t => {
        if (!this.kernel.records.get(ActivationKind.name, id)) throw notFound(id)
        const cleared = this.#projection.clear(t, id, actor.cause)
        this.kernel.records.delete(t, systemActor(actor), { kind: ActivationKind, id })
        return cleared
      }),
    )
    await this.kernel.needs.reconcile.settled([...keys, { kind: ActivationKind.name, id }], { timeoutMs: SETTLE_MS })
  }

  /**
   * Projects the current profile of an activation; a conflict is thrown and changes nothing. A changed network
   * requirement clears the confirmation of the old one.
   */
  follow(id: string): Promise<void> {
    return this.#exclusive.run(async () => {
      const before = this.kernel.records.get(ActivationKind, id)
      if (!before) return
      const found = this.catalog.find(before.spec)
      const activation = await this.#clearDrift(before, found)
      if (found.bundle.requirement !== '' && activation.spec.confirmed_by === undefined)
        throw unconfirmedUpdate(activation)
      if ((await undone(this.kernel.db, t => this.#projection.apply(t, activation, found))) === 0) return
      await this.#visible.check(found.profile, activation.scope)
      this.#noteDrift(activation, found)
      await this.kernel.db.tx(t => {
        this.#unchanged(found)
        this.#projection.apply(t, activation, found)
      })
    })
  }

  /** Removes the projected records of activations that no longer exist. */
  forget(ids: readonly string[]): Promise<void> {
    return this.#exclusive.run(async () => {
      const left = ids.filter(
        id => !this.kernel.records.get(ActivationKind.name, id) && this.#projection.owned(id).length > 0,
      )
      if (left.length > 0) await this.kernel.db.tx(t => left.map(id => this.#projection.clear(t, id)))
    })
  }

  /** An activation with its records and diagnostics; `late`: the reconcilers did not finish within {@link SETTLE_MS}. */
  view(record: Activation, late = false): BundleActivation {
    const owned = this.#projection.owned(record.id)
    const diagnostics = diagnosticsOf(
      [record, ...owned],
      this.kernel.needs.reconcile.health(),
      late ? SETTLE_MS : undefined,
    )
    const wire = activationToWire(record, owned, this.found(record.spec))
    return diagnostics.length > 0 ? { ...wire, diagnostics } : wire
  }

  /** The profile of an activation; undefined while its extension is not loaded or does not declare it. */
  found(spec: ActivationSpec): Found | undefined {
    try {
      return this.catalog.find(spec)
    } catch {
      return undefined
    }
  }

  async #scope({ scope = 'global', workspace }: BundleActivationRequest): Promise<RecordScope> {
    if (scope === 'global' && !workspace) return { kind: 'global' }
    if (scope === 'global')
      throw BundleErrors.bundle_scope_invalid('a workspace requires scope workspace; change one of them')
    if (!workspace)
      throw BundleErrors.bundle_scope_invalid('scope workspace needs a workspace: its id, name or path', {
        next: command('workspace list'),
      })
    return { kind: 'workspace', id: (await this.kernel.needs.workspaces.find(workspace)).id }
  }

  /** Rejects agent names that another overlapping activation or a visible agent already has, before anything is written. */
  async #check(id: string, found: Found, scope: RecordScope): Promise<void> {
    const own = new Set(found.profile.agents.map(({ spec }) => spec.name))
    for (const other of this.list()) {
      if (other.id === id || !overlaps(scope, other.scope)) continue
      const taken = this.found(other.spec)?.profile.agents.find(({ spec }) => own.has(spec.name))
      if (taken) throw conflict(taken.spec.name, `activation ${other.id}`)
    }
    await this.#visible.check(found.profile, scope)
  }

  /** Rejects the write if the profile changed after it was checked. */
  #unchanged({ bundle, profile }: Found): void {
    const names = { extension_name: bundle.extension, bundle_name: bundle.name, profile_name: profile.name }
    const now = this.found({ ...names, spec_content_hash: '', network_requirement_digest: '' })
    if (now?.profile.hash === profile.hash && now.bundle.requirement === bundle.requirement) return
    throw BundleErrors.bundle_version_conflict('the extension changed meanwhile; try again')
  }

  #spec({ bundle, profile }: Found, confirm: boolean | undefined, before?: ActivationSpec): ActivationSpec {
    const kept = before?.network_requirement_digest === bundle.requirement ? before : undefined
    const confirmation = confirm
      ? { confirmed_by: 'operator', confirmed_at: iso(this.kernel.clock.now()) }
      : { confirmed_by: kept?.confirmed_by, confirmed_at: kept?.confirmed_at }
    return {
      extension_name: bundle.extension,
      bundle_name: bundle.name,
      profile_name: profile.name,
      spec_content_hash: profile.hash,
      network_requirement_digest: bundle.requirement,
      ...(bundle.requirement === '' ? {} : confirmation),
    }
  }

  #write(
    t: Tx,
    actor: Actor,
    id: string,
    scope: RecordScope,
    spec: ActivationSpec,
    expectedVersion: number,
  ): Activation {
    return this.kernel.records.put(t, systemActor(actor), { kind: ActivationKind, id, scope, spec, expectedVersion })
      .record
  }

  async #clearDrift(before: Activation, { bundle }: Found): Promise<Activation> {
    if (before.spec.network_requirement_digest === bundle.requirement) return before
    const { confirmed_at: _, confirmed_by: __, ...rest } = before.spec
    const spec = { ...rest, network_requirement_digest: bundle.requirement }
    return this.kernel.db.tx(t => this.#write(t, this.kernel.actor, before.id, before.scope, spec, before.version))
  }

  #noteDrift({ id, spec }: Activation, { profile }: Found): void {
    if (spec.spec_content_hash === profile.hash) return
    const code = spec.spec_content_hash === '' ? 'spec_hash_missing' : 'spec_hash_drift'
    this.kernel.log.warn(`the profile of activation ${id} changed; its new content is projected`, { code })
  }

  async #settledView(id: string): Promise<BundleActivation> {
    const keys = [{ kind: ActivationKind.name, id }, ...this.#projection.owned(id)]
    const settled = await this.kernel.needs.reconcile.settled(keys, { timeoutMs: SETTLE_MS })
    return this.view(this.get(id), !settled)
  }
}

/** The daemon writes activations; the requester counts only as the cause. */
function systemActor({ cause }: Actor): Actor {
  return { ...operator, origin: 'daemon', ...(cause === undefined ? {} : { cause }) }
}

function activationId({ bundle, profile }: Found, scope: RecordScope): string {
  return derivedId('activation', bundle.extension, bundle.name, profile.name, scope.kind, scope.id ?? '')
}

export const notFound = (id: string) => BundleErrors.bundle_activation_not_found(`there is no activation ${shown(id)}`)

const alike = (one: string, other: string) => one.toLowerCase() === other.toLowerCase()
