/** Bundles: presets that extensions provide, and their activations. */
import * as v from 'valibot'
import { Integer, Timestamp } from './kernel/common.js'

const text = v.string()
const maybeText = v.optional(text)

/** Where an activation applies. */
export const BundleScope = v.picklist(['global', 'workspace'])
export type BundleScope = v.InferOutput<typeof BundleScope>

/** A channel declared by a profile; the declaration adds no participants. */
export const BundleChannel = v.object({ name: text, description: maybeText, primary: v.optional(v.boolean()) })
export type BundleChannel = v.InferOutput<typeof BundleChannel>

/** A profile in the catalog. */
export const BundleProfile = v.object({
  name: text,
  description: maybeText,
  channels: v.optional(v.array(BundleChannel)),
  primary_channel: maybeText,
  agent_count: v.optional(Integer),
  bridge_count: v.optional(Integer),
  job_count: v.optional(Integer),
  layout_count: v.optional(Integer),
  trigger_count: v.optional(Integer),
})
export type BundleProfile = v.InferOutput<typeof BundleProfile>

/** GET /api/bundles/catalog. */
export const BundleCatalogReply = v.object({
  bundles: v.array(
    v.object({
      extension_name: text,
      bundle_name: text,
      description: maybeText,
      profiles: v.optional(v.array(BundleProfile)),
    }),
  ),
})
export type BundleCatalogReply = v.InferOutput<typeof BundleCatalogReply>

const confirm = v.optional(v.pipe(v.boolean(), v.description('confirm that the extension may join the network')))

/** POST /api/bundles/preview and /api/bundles/activations. */
export const BundleActivationRequest = v.strictObject({
  extension_name: v.pipe(text, v.description('name of the extension')),
  bundle_name: v.pipe(text, v.description('name of the bundle: svc bundle catalog')),
  profile_name: v.pipe(text, v.description('name of the profile')),
  scope: v.optional(v.pipe(BundleScope, v.description('scope of the activation; default: global'))),
  workspace: v.optional(v.pipe(text, v.description('id, name or path of the workspace; for scope workspace'))),
  confirm_network_requirement: confirm,
})
export type BundleActivationRequest = v.InferOutput<typeof BundleActivationRequest>

/** PATCH /api/bundles/activations/{id}. */
export const BundleActivationPatch = v.strictObject({
  expected_version: v.pipe(Integer, v.description('current version of the activation: svc bundle get')),
  confirm_network_requirement: confirm,
})
export type BundleActivationPatch = v.InferOutput<typeof BundleActivationPatch>

/** A record created by an activation. */
export const InventoryItem = v.object({ resource_kind: text, resource_id: text, resource_name: text })
export type InventoryItem = v.InferOutput<typeof InventoryItem>

/** A resource that the runtime could not apply, with the reason. */
export const ActivationDiagnostic = v.object({ resource_kind: text, resource_id: text, message: text })
export type ActivationDiagnostic = v.InferOutput<typeof ActivationDiagnostic>

/** An active profile and its projected resources. */
export const BundleActivation = v.object({
  id: text,
  extension_name: text,
  bundle_name: text,
  bundle_description: maybeText,
  profile_name: text,
  profile_description: maybeText,
  scope: text,
  workspace_id: maybeText,
  version: Integer,
  /** The profile changed since the activation was made or updated; the projected resources follow the new profile. */
  spec_drift: v.boolean(),
  network_requirement_digest: maybeText,
  network_requirement_confirmed_at: maybeText,
  network_requirement_confirmed_by: maybeText,
  channels: v.optional(v.array(BundleChannel)),
  agents: v.optional(
    v.array(
      v.object({
        id: text,
        name: text,
        category_path: v.optional(v.array(text)),
        has_heartbeat: v.optional(v.boolean()),
        has_soul: v.optional(v.boolean()),
        model: maybeText,
        provider: maybeText,
      }),
    ),
  ),
  jobs: v.optional(v.array(v.object({ id: text, name: text, agent_name: text, enabled: v.boolean() }))),
  triggers: v.optional(
    v.array(v.object({ id: text, name: text, agent_name: text, event: text, enabled: v.boolean() })),
  ),
  layouts: v.optional(
    v.array(
      v.object({
        id: text,
        display_name: text,
        aspect_variant: text,
        overflow_policy: text,
        participant_slots: v.optional(v.array(text)),
      }),
    ),
  ),
  bridges: v.optional(
    v.array(
      v.object({
        id: text,
        name: text,
        display_name: text,
        extension_name: text,
        platform: text,
        secret_slots: v.optional(v.array(v.object({ name: text, kind: text, description: maybeText }))),
      }),
    ),
  ),
  inventory: v.optional(v.array(InventoryItem)),
  diagnostics: v.optional(v.array(ActivationDiagnostic)),
  created_at: Timestamp,
  updated_at: Timestamp,
})
export type BundleActivation = v.InferOutput<typeof BundleActivation>

/** Replies with one activation. */
export const BundleActivationReply = v.object({ activation: BundleActivation })
export type BundleActivationReply = v.InferOutput<typeof BundleActivationReply>

/** GET /api/bundles/activations. */
export const ListBundleActivationsReply = v.object({ activations: v.array(BundleActivation) })
export type ListBundleActivationsReply = v.InferOutput<typeof ListBundleActivationsReply>

/** A channel and its declaring activation. */
export const DeclaredChannel = v.object({
  name: text,
  description: maybeText,
  primary: v.optional(v.boolean()),
  activation_id: maybeText,
  extension_name: maybeText,
  bundle_name: maybeText,
  profile_name: maybeText,
  workspace_id: maybeText,
})
export type DeclaredChannel = v.InferOutput<typeof DeclaredChannel>

/** GET /api/bundles/network/settings. */
export const BundleNetworkReply = v.object({
  network: v.object({ declared_channels: v.optional(v.array(DeclaredChannel)) }),
})
export type BundleNetworkReply = v.InferOutput<typeof BundleNetworkReply>
