import { command } from '../../../../kernel/kit/commands/command-line.js'
import type { RowOf } from '../../../../kernel/kit/table.js'
import { shown } from '../../../../kernel/kit/text.js'
import type { Actor, Tx } from '../../../../kernel/plugin.js'
import { BridgeSecretBinding, type PutBridgeSecretBody } from '../../../../schemas/bridges.js'
import { type BoundSecret, BridgeErrors, type SecretSlot } from '../api.js'
import type { K } from '../needs.js'
import type { Instance, Instances } from './instances.js'
import { placeOf, refOf } from './secrets-ref.js'
import { secrets } from './table.js'

/** Maximum bytes of a value: longer ones could not be redacted in output. */
const VALUE_MAX = 64 * 1024

/** Secrets of instances: each slot has a place in the vault, and the table lists the bound slots. */
export class Secrets {
  constructor(
    private readonly kernel: K,
    private readonly instances: Instances,
  ) {}

  /** The slots of an instance, from its adapter and its package. */
  slotsOf(instance: Pick<Instance, 'id' | 'extension' | 'platform'>): readonly SecretSlot[] {
    const own = this.instances.found(instance.id).spec.secret_slots ?? []
    const slots = this.instances.providerOf(instance)?.secretSlots ?? []
    return [...slots, ...own.filter(({ name }) => !slots.some(slot => slot.name === name))]
  }

  /** Required slots that are not bound. */
  missing(instance: Pick<Instance, 'id' | 'extension' | 'platform'>): string[] {
    const required = this.slotsOf(instance).filter(slot => slot.required === true)
    if (required.length === 0) return []
    const bound = new Set(secrets.all(this.kernel.db, { instanceId: instance.id }).map(({ name }) => name))
    return required.filter(({ name }) => !bound.has(name)).map(({ name }) => name)
  }

  /** The bound secrets with values, for the adapter only. Those without a value in the vault are left out. */
  async reveal(id: string): Promise<BoundSecret[]> {
    const found: BoundSecret[] = []
    for (const { name, kind } of secrets.all(this.kernel.db, { instanceId: id }, 'ORDER BY name')) {
      const value = await this.kernel.needs.vault.reveal(refOf(id, name))
      if (value !== undefined) found.push({ binding_name: name, kind, value })
    }
    return found
  }

  list(id: string, actor: Actor): BridgeSecretBinding[] {
    this.instances.found(id, actor)
    return secrets.all(this.kernel.db, { instanceId: id }, 'ORDER BY name').map(row => bindingOf(row))
  }

  /** @throws Fault `bridge_not_found`, `bridge_binding_invalid`, `bridge_slot_unknown`, and those of the vault */
  async put(id: string, name: string, body: PutBridgeSecretBody, actor: Actor): Promise<BridgeSecretBinding> {
    const { db, clock, needs } = this.kernel
    const instance = this.instances.getVisible(id, actor)
    this.#known(instance, name)
    const ref = refOf(id, name)
    if (body.secret_ref !== ref) {
      throw BridgeErrors.bridge_binding_invalid(
        `secret_ref: ${shown(body.secret_ref)} is not the reference of the slot, ${ref}`,
      )
    }
    const value = body.secret_value ?? undefined
    if (value !== undefined) {
      if (Buffer.byteLength(value) > VALUE_MAX)
        throw BridgeErrors.bridge_binding_invalid(`secret_value: longer than ${VALUE_MAX / 1024} KiB`, {
          next: command('bridge secret-bindings put', id, name),
        })
      if (value.trim() === '') throw BridgeErrors.bridge_binding_invalid('secret_value: is empty')
      await needs.vault.put(ref, value, { kind: body.kind, actor })
    } else if (!needs.vault.list(ref.slice('vault:'.length)).some(secret => secret.ref === ref)) {
      throw BridgeErrors.bridge_binding_invalid(`secret_value: missing, and the vault has nothing at ${ref}`, {
        next: command('bridge secret-bindings put', id, name),
      })
    }
    const now = clock.now()
    const row = await db.tx(t => {
      this.instances.found(id)
      const before = secrets.get(t, { instanceId: id, name })
      const after = { instanceId: id, name, kind: body.kind, createdAt: before?.createdAt ?? now, updatedAt: now }
      secrets.replace(t, after)
      this.#changed(t, instance)
      return after
    })
    return bindingOf(row)
  }

  /** @throws Fault `bridge_not_found`, `bridge_slot_unknown`, `bridge_binding_not_found` */
  async delete(id: string, name: string, actor: Actor): Promise<void> {
    const { db, needs } = this.kernel
    const instance = this.instances.getVisible(id, actor)
    await db.tx(t => {
      if (secrets.delete(t, { instanceId: id, name }) === 0) {
        this.#known(instance, name)
        throw BridgeErrors.bridge_binding_not_found(`the slot ${name} is not bound`, {
          next: command('bridge secret-bindings list', id),
        })
      }
      needs.vault.forget(t, `bridges/${id}/${name}`)
      this.instances.touched(t, id)
    })
  }

  /**
   * Handles a changed or deleted vault value; a deletion unbinds its slot.
   * @returns the affected instance; undefined if no slot is bound to the reference
   */
  async follow(ref: string, change: 'put' | 'deleted'): Promise<Instance | undefined> {
    const { id = '', name = '' } = placeOf(ref) ?? {}
    const isBound = () => secrets.get(this.kernel.db, { instanceId: id, name }) !== undefined
    if (!isBound()) return undefined
    return this.kernel.db.tx(t => {
      const instance = this.instances.get(id)
      if (!instance || !isBound()) return undefined
      if (change === 'deleted') {
        secrets.delete(t, { instanceId: id, name })
        this.instances.touched(t, id)
      } else {
        secrets.update(t, { instanceId: id, name }, { updatedAt: this.kernel.clock.now() })
        this.#changed(t, instance)
      }
      return instance
    })
  }

  /** Handles a new value of a slot: an instance that waited for it starts again. */
  #changed(t: Tx, instance: Instance): void {
    const { id } = instance
    if (this.instances.getVisible(id).status === 'auth_required' && this.missing(instance).length === 0)
      this.instances.move(t, id, { status: 'starting' })
    else this.instances.touched(t, id)
  }

  #known(instance: Instance, name: string): void {
    const slots = this.slotsOf(instance).map(slot => slot.name)
    if (slots.includes(name)) return
    const known = slots.length > 0 ? `it has ${slots.join(', ')}` : 'it has none'
    throw BridgeErrors.bridge_slot_unknown(
      `the platform ${instance.platform} has no secret slot ${shown(name)}; ${known}`,
    )
  }
}

function bindingOf(row: RowOf<typeof secrets>): BridgeSecretBinding {
  const { instanceId, name } = row
  return secrets.wire(row, BridgeSecretBinding, {
    bridge_instance_id: instanceId,
    binding_name: name,
    secret_ref: refOf(instanceId, name),
  })
}
