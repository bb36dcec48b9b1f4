import * as v from 'valibot'
import { text } from '../../../kernel/kit/text.js'
import { kind, type RecordScope } from '../../../kernel/plugin.js'
import { mapOf } from '../../../schemas/kernel/map-of.js'
import { looksSecret } from '../../agents/providers/api.js'

const flag = v.optional(v.boolean(), false)

/** Parts of an address that distinguish conversations. */
export const RoutingPolicy = v.object({ include_group: flag, include_peer: flag, include_thread: flag })
export type RoutingPolicy = v.InferOutput<typeof RoutingPolicy>

/** A secret that the platform needs; the vault stores its value. */
export const SecretSlot = v.object({
  name: v.pipe(v.string(), v.regex(/^[a-z][a-z0-9_]{0,63}$/, 'a name of a-z, 0-9 and _')),
  kind: v.optional(text(64), 'secret'),
  description: v.optional(v.string()),
  required: v.optional(v.boolean()),
})
export type SecretSlot = v.InferOutput<typeof SecretSlot>

const progress = v.object({
  grouping: v.optional(v.picklist(['accumulate', 'separate'])),
  reactions: v.optional(v.boolean()),
  tool_progress: v.optional(v.picklist(['off', 'new', 'all', 'verbose'])),
  typing: v.optional(v.boolean()),
})

/** Defaults for unsolicited messages; platform-specific members are texts. */
const deliveryDefaults = v.objectWithRest(
  {
    mode: v.optional(v.picklist(['direct-send', 'reply']), 'direct-send'),
    peer_id: v.optional(v.string()),
    group_id: v.optional(v.string()),
    thread_id: v.optional(v.string()),
    progress: v.optional(progress),
  },
  v.string(),
)

const degradation = v.object({
  reason: v.picklist(['auth_failed', 'rate_limited', 'webhook_invalid', 'provider_timeout', 'tenant_config_invalid']),
  message: v.optional(v.string()),
})

/** States of an instance; `disabled` is equivalent to `enabled: false`. */
const states = ['disabled', 'starting', 'ready', 'degraded', 'auth_required', 'error'] as const

/** Spec of a record of kind `bridge.instance`, decoded leniently: unknown members are dropped. */
export const BridgeInstanceSpec = v.object({
  id: v.optional(v.string()),
  /** Name in its package. */
  name: v.optional(v.string()),
  display_name: text(200),
  platform: v.pipe(v.string(), v.regex(/^[a-z][a-z0-9_-]{0,63}$/, 'a platform like slack')),
  extension_name: text(128),
  scope: v.optional(v.picklist(['user', 'global', 'workspace'])),
  workspace_id: v.optional(v.string()),
  source: v.optional(v.picklist(['dynamic', 'package']), 'dynamic'),
  enabled: flag,
  status: v.optional(v.picklist(states)),
  dm_policy: v.optional(v.picklist(['open', 'allowlist', 'pairing']), 'open'),
  routing_policy: RoutingPolicy,
  delivery_defaults: v.nullish(deliveryDefaults),
  provider_config: v.nullish(mapOf(v.string(), v.unknown())),
  secret_slots: v.optional(v.array(SecretSlot)),
  notification_suppress: flag,
  degradation: v.nullish(degradation),
})
export type BridgeInstanceSpec = v.InferOutput<typeof BridgeInstanceSpec>

/** The canonical form always has a state. */
const canonical = v.pipe(
  BridgeInstanceSpec,
  v.transform(spec => ({ ...spec, status: spec.status ?? (spec.enabled ? 'starting' : 'disabled') })),
)

/** Problem of a routing policy; undefined if valid. */
export function routingProblem(policy: RoutingPolicy): string | undefined {
  return policy.include_thread && !policy.include_peer && !policy.include_group
    ? 'routing_policy: include_thread needs include_peer or include_group'
    : undefined
}

/** The kind of bridge instances. */
export const BridgeInstanceKind = kind<v.InferOutput<typeof canonical>>({
  name: 'bridge.instance',
  spec: canonical,
  maxBytes: 256 * 1024,
  check: ({ id, scope, spec }) =>
    scopeProblem(id, scope, spec) ??
    routingProblem(spec.routing_policy) ??
    ((spec.status === 'disabled') === spec.enabled
      ? 'status: disabled is required with enabled: false, and not allowed otherwise'
      : undefined) ??
    (spec.delivery_defaults?.thread_id && !spec.delivery_defaults.peer_id && !spec.delivery_defaults.group_id
      ? 'delivery_defaults.thread_id: needs peer_id or group_id'
      : undefined) ??
    secretProblem(spec.provider_config, 'provider_config'),
})

function scopeProblem(id: string, scope: RecordScope, spec: BridgeInstanceSpec): string | undefined {
  if (spec.id !== undefined && spec.id !== id) return `id: ${JSON.stringify(spec.id)} is not the id of the record`
  const workspace = scope.kind === 'workspace'
  if (spec.scope !== undefined && (spec.scope === 'workspace') !== workspace)
    return `scope: ${spec.scope}, but the record has scope ${scope.kind}`
  if (spec.workspace_id && spec.workspace_id !== scope.id) return 'workspace_id: not that of the scope of the record'
  return undefined
}

/** Rejects values that look like secrets: they belong in secret slots, because everyone who may list records sees them. */
function secretProblem(value: unknown, path: string): string | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  for (const [name, member] of Object.entries(value)) {
    const at = `${path}.${name}`
    if (typeof member === 'string' && member !== '' && looksSecret(name))
      return `${at}: looks like a secret; bind it to a secret slot`
    const below = secretProblem(member, at)
    if (below !== undefined) return below
  }
  return undefined
}
