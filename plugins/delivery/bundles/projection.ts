import { command } from '../../../kernel/kit/commands/command-line.js'
import type { Actor, Party, PluginKernel, StoredRecord, Tx } from '../../../kernel/plugin.js'
import { BundleErrors } from './errors.js'
import type { ActivationSpec } from './kinds.js'
import type { LoadedBundle, LoadedProfile } from './load.js'
import { inventoryOrder, project } from './project.js'
import type { VisibleAgents } from './visible-agents.js'

/** A profile and its bundle. */
export interface Found {
  readonly bundle: LoadedBundle
  readonly profile: LoadedProfile
}

/** The actor that writes the records of an activation. */
function projectionActor(id: string, cause: string | undefined): Actor {
  const name = `bundle.activation.${id}`
  return {
    kind: 'daemon',
    id: name,
    owner: { kind: 'bundle.activation', id },
    source: { kind: 'daemon', id: name },
    origin: 'daemon',
    ...(cause === undefined ? {} : { cause }),
  }
}

const same = (a: Party, b: Party) => a.kind === b.kind && a.id === b.id
const keyOf = ({ kind, id }: { kind: string; id: string }) => `${kind}\n${id}`

/** Reads and writes the projected records of activations. Methods that take a transaction run synchronously in it. */
export class Projection {
  constructor(
    private readonly kernel: Pick<PluginKernel, 'records'>,
    private readonly visible: VisibleAgents,
  ) {}

  /** The records of an activation, in inventory order. */
  owned(id: string): StoredRecord[] {
    const { owner, source } = projectionActor(id, undefined)
    return this.kernel.records
      .list({ owner })
      .filter(record => same(record.source, source))
      .map(record => ({ record, order: inventoryOrder(record) }))
      .sort((a, b) => (a.order < b.order ? -1 : 1))
      .map(({ record }) => record)
  }

  /**
   * Writes the records of the profile and removes all others of the activation; equal records are not written.
   * @returns how many records were written or removed
   * @throws Fault of a codec, a guard, `bundle_agent_conflict`, `bundle_trigger_webhook`, `bundle_record_taken`
   */
  apply(t: Tx, activation: StoredRecord<ActivationSpec>, { bundle, profile }: Found, cause?: string): number {
    const { id, scope } = activation
    const webhook = profile.triggers.find(({ event }) => event === 'webhook')
    if (webhook)
      throw BundleErrors.bundle_trigger_webhook(
        `trigger ${JSON.stringify(webhook.name)} is a webhook, which a package cannot contain`,
      )
    this.visible.checkRecords(profile, id, scope)
    const { extension, key, name, platform } = bundle
    const wanted = project(profile, {
      activationId: id,
      scope,
      extension,
      key,
      bundle: name,
      profile: profile.name,
      platform,
    })
    const keys = new Set(wanted.map(keyOf))
    const { records } = this.kernel
    const actor = projectionActor(id, cause)
    // Deletions come first: a new record may take the name of a deleted one.
    const gone = this.owned(id).filter(record => !keys.has(keyOf(record)))
    for (const { kind, id: own } of gone) records.delete(t, actor, { kind, id: own })
    let written = 0
    for (const { kind, id: own, spec } of wanted) {
      const before = records.get(kind, own)
      if (before && !same(before.source, actor.source))
        throw BundleErrors.bundle_record_taken(
          `${kind} ${own} exists and comes from ${before.source.kind}/${before.source.id}`,
          { next: command('resource get', kind, own) },
        )
      if (records.put(t, actor, { kind, id: own, scope, spec, quiet: true }).event !== undefined) written++
    }
    return gone.length + written
  }

  /** Removes all records of an activation. Returns their keys. */
  clear(t: Tx, id: string, cause?: string): { readonly kind: string; readonly id: string }[] {
    const all = this.owned(id)
    const actor = projectionActor(id, cause)
    for (const { kind, id: own } of all) this.kernel.records.delete(t, actor, { kind, id: own })
    return all.map(({ kind, id: own }) => ({ kind, id: own }))
  }
}
