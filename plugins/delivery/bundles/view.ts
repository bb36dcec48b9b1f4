import { iso, type StoredRecord } from '../../../kernel/plugin.js'
import type {
  ActivationDiagnostic,
  BundleActivation,
  BundleCatalogReply,
  BundleChannel,
  InventoryItem,
} from '../../../schemas/bundles.js'
import type { KindHealth } from '../../platform/reconcile/api.js'
import type { ActivationSpec } from './kinds.js'
import type { LoadedBundle, LoadedProfile } from './load.js'

/** A stored spec as it is: it may be older than the current codec, so members are read with type checks. */
type Spec = Readonly<Record<string, unknown>>

const text = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)
const omitUndefined = (members: Record<string, unknown>) =>
  Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as Record<string, never>

/** Display name of a record. */
function nameOf({ kind, id, spec }: StoredRecord): string {
  const { name, agent_name, display_name } = spec as Spec
  if (kind === 'window_layout' || kind === 'bridge.instance') return text(display_name) ?? id
  return text(kind.startsWith('agent.') ? agent_name : name) ?? id
}

/** Wire form of an activation with its records; `owned` is in inventory order. */
export function activationToWire(
  record: StoredRecord<ActivationSpec>,
  owned: readonly StoredRecord[],
  found?: { readonly bundle: LoadedBundle; readonly profile: LoadedProfile },
): BundleActivation {
  const { spec, scope } = record
  const of = (kind: string) =>
    owned.filter(other => other.kind === kind).map(other => ({ id: other.id, spec: other.spec as Spec }))
  const agentIdsOf = (kind: string) => new Set(of(kind).map(other => other.spec.agent_id))
  const [souls, heartbeats] = [agentIdsOf('agent.soul'), agentIdsOf('agent.heartbeat')]
  const current = found?.bundle.requirement === spec.network_requirement_digest || !found
  return {
    id: record.id,
    extension_name: spec.extension_name,
    bundle_name: spec.bundle_name,
    profile_name: spec.profile_name,
    ...omitUndefined({
      bundle_description: found?.bundle.description,
      profile_description: found?.profile.description,
    }),
    scope: scope.kind === 'workspace' ? 'workspace' : 'global',
    ...omitUndefined({ workspace_id: scope.id }),
    version: record.version,
    spec_drift: found !== undefined && found.profile.hash !== spec.spec_content_hash,
    network_requirement_digest: found?.bundle.requirement ?? spec.network_requirement_digest,
    ...(current
      ? omitUndefined({
          network_requirement_confirmed_at: spec.confirmed_at,
          network_requirement_confirmed_by: spec.confirmed_by,
        })
      : {}),
    channels: found ? channelsOf(found.profile) : [],
    agents: of('agent').map(({ id, spec: agent }) => ({
      id,
      name: text(agent.name) ?? id,
      ...omitUndefined({ category_path: agent.category_path, model: agent.model, provider: agent.provider }),
      has_heartbeat: heartbeats.has(id),
      has_soul: souls.has(id),
    })),
    jobs: of('automation.job').map(definition),
    triggers: of('automation.trigger').map(one => ({ ...definition(one), event: text(one.spec.event) ?? '' })),
    layouts: of('window_layout').map(({ id, spec: layout }) => ({
      id,
      display_name: text(layout.display_name) ?? id,
      aspect_variant: text(layout.aspect) ?? 'any',
      overflow_policy: text(layout.overflow) ?? 'stack',
      ...omitUndefined({ participant_slots: slotIds(layout.participants) }),
    })),
    bridges: of('bridge.instance').map(({ id, spec: bridge }) => ({
      id,
      name: text(bridge.name) ?? id,
      display_name: text(bridge.display_name) ?? id,
      extension_name: text(bridge.extension_name) ?? spec.extension_name,
      platform: text(bridge.platform) ?? '',
      ...omitUndefined({ secret_slots: bridge.secret_slots }),
    })),
    inventory: owned.map(inventoryItem),
    created_at: iso(record.createdAt),
    updated_at: iso(record.updatedAt),
  }
}

const inventoryItem = (record: StoredRecord): InventoryItem => ({
  resource_kind: record.kind,
  resource_id: record.id,
  resource_name: nameOf(record),
})

const definition = ({ id, spec }: { id: string; spec: Spec }) => ({
  id,
  name: text(spec.name) ?? id,
  agent_name: text(spec.agent_name) ?? '',
  enabled: spec.enabled !== false,
})

function slotIds(slots: unknown): string[] | undefined {
  if (!Array.isArray(slots)) return undefined
  return slots.flatMap(slot => text((slot as Spec | null)?.id) ?? [])
}

/**
 * Failed reconciliations of an activation (the first record) and of its records.
 * @param lateMs milliseconds of a wait for the reconcilers that timed out
 */
export function diagnosticsOf(
  records: readonly [StoredRecord, ...StoredRecord[]],
  health: readonly KindHealth[],
  lateMs?: number,
): ActivationDiagnostic[] {
  const own = new Set(records.map(({ kind, id }) => `${kind}\n${id}`))
  const failed = health
    .flatMap(({ quarantined }) => quarantined)
    .filter(({ kind, id }) => own.has(`${kind}\n${id}`))
    .map(({ kind, id, error }) => ({ resource_kind: kind, resource_id: id, message: error }))
  if (lateMs === undefined) return failed
  const [{ kind, id }] = records
  const message = `the runtime has not applied everything within ${lateMs / 1000} s; it continues`
  return [...failed, { resource_kind: kind, resource_id: id, message }]
}

/** Wire form of the channels of a profile. */
export function channelsOf({ channels, primaryChannel }: LoadedProfile): BundleChannel[] {
  return channels.map(({ name, description }) => ({
    name,
    ...omitUndefined({ description }),
    primary: name === primaryChannel,
  }))
}

/** Wire form of the catalog. */
export function catalogToWire(bundles: readonly LoadedBundle[]): BundleCatalogReply {
  return {
    bundles: bundles.map(bundle => ({
      extension_name: bundle.extension,
      bundle_name: bundle.name,
      ...omitUndefined({ description: bundle.description }),
      profiles: bundle.profiles.map(profile => ({
        name: profile.name,
        ...omitUndefined({ description: profile.description, primary_channel: profile.primaryChannel }),
        channels: channelsOf(profile),
        agent_count: profile.agents.length,
        bridge_count: profile.bridges.length,
        job_count: profile.jobs.length,
        layout_count: profile.layouts.length,
        trigger_count: profile.triggers.length,
      })),
    })),
  }
}
