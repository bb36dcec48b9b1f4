import { command } from '../../../../kernel/kit/commands/command-line.js'
import { iso } from '../../../../kernel/plugin.js'
import type { Bridge, BridgeDiagnostic, BridgeHealth } from '../../../../schemas/bridges.js'
import { type Figures, type Instance, type InstanceRecord, instanceOf, isPackaged, sumOf } from './instances.js'
import type { InstanceState } from './table.js'

const timeOf = (ms: number | undefined) => (ms === undefined ? null : iso(ms))

/** Why an instance has problems, if known. */
const degradationOf = ({ reason, message }: Pick<InstanceState, 'reason' | 'message'> | Record<string, never>) =>
  reason === undefined ? null : { reason, ...(message === undefined ? {} : { message }) }

/** An instance in API form. */
export function bridgeOf(record: InstanceRecord, state: InstanceState | undefined): Bridge {
  const { spec, createdAt, updatedAt } = record
  const { enabled, status, scope, workspaceId } = instanceOf(record, state)
  return {
    id: record.id,
    display_name: spec.display_name,
    platform: spec.platform,
    extension_name: spec.extension_name,
    scope,
    ...(workspaceId === undefined ? {} : { workspace_id: workspaceId }),
    source: isPackaged(record) ? 'package' : 'dynamic',
    enabled,
    status,
    dm_policy: spec.dm_policy,
    routing_policy: spec.routing_policy,
    delivery_defaults: defaultsOf(spec.delivery_defaults),
    provider_config: spec.provider_config ?? null,
    notification_suppress: spec.notification_suppress,
    degradation: degradationOf(state ?? {}),
    ...(state?.webhookUrl === undefined ? {} : { webhook_public_url: state.webhookUrl }),
    created_at: iso(createdAt),
    updated_at: iso(updatedAt),
  }
}

/** The contract requires both members of `progress` if it is present. */
function defaultsOf(defaults: InstanceRecord['spec']['delivery_defaults']): Bridge['delivery_defaults'] {
  if (!defaults) return null
  const { progress, ...rest } = defaults as typeof defaults & { progress?: object }
  return {
    ...rest,
    ...(progress && { progress: { grouping: 'accumulate', tool_progress: 'off', ...progress } }),
  } as Bridge['delivery_defaults']
}

/** Health of an instance, with a diagnostic per problem. */
export function healthOf(
  instance: Instance,
  state: InstanceState | undefined,
  figures: Figures,
  diagnostics: readonly BridgeDiagnostic[],
): BridgeHealth {
  const { id, status } = instance
  const dropped = state?.dropped ?? {}
  return {
    bridge_instance_id: id,
    status,
    auth_failures_total: state?.authFailures ?? 0,
    delivery_backlog: figures.backlog(id),
    delivery_dropped_total: sumOf(dropped),
    delivery_dropped_by_reason: { ...dropped },
    delivery_failures_total: state?.deliveryFailures ?? 0,
    route_count: figures.routes(id),
    degradation: degradationOf(state ?? {}),
    diagnostics: [...diagnostics],
    ...(state?.lastError === undefined ? {} : { last_error: state.lastError }),
    last_error_at: timeOf(state?.lastErrorAt),
    last_success_at: timeOf(state?.lastSuccessAt),
  }
}

/** Diagnostic kind for each reason reported by an adapter. */
const KINDS = {
  auth_failed: 'missing_token',
  rate_limited: 'transient_delivery_failure',
  webhook_invalid: 'permission_denied',
  provider_timeout: 'transient_delivery_failure',
  tenant_config_invalid: 'permission_denied',
} as const

/**
 * The problems of an enabled instance, each with a next step.
 * @param missing slots without a required secret
 * @param hasAdapter whether its extension is running
 */
export function diagnosticsOf(
  { id, status, extension, platform }: Instance,
  state: InstanceState | undefined,
  { missing, hasAdapter }: { readonly missing: readonly string[]; readonly hasAdapter: boolean },
): BridgeDiagnostic[] {
  if (status === 'disabled') return []
  const common = { bridge_instance_id: id, status }
  const found: BridgeDiagnostic[] = missing.map(slot => ({
    ...common,
    kind: 'missing_token',
    severity: 'error',
    source: 'secrets',
    secret_slot: slot,
    message: `the secret ${slot} is not bound`,
    next_action: command('bridge secret-bindings put', id, slot),
  }))
  if (!hasAdapter) {
    found.push({
      ...common,
      kind: 'unsupported_capability',
      severity: 'error',
      source: 'extension',
      message: `the extension ${extension} with the platform ${platform} does not run`,
      next_action: command('extension list'),
    })
  }
  const { reason, message } = state ?? {}
  if (missing.length === 0 && (status === 'degraded' || status === 'auth_required' || status === 'error')) {
    found.push({
      ...common,
      kind: reason ? KINDS[reason] : 'transient_delivery_failure',
      severity: status === 'degraded' ? 'warning' : 'error',
      source: 'adapter',
      message: message ?? `the adapter reports ${status}`,
      ...(reason && { degradation_reason: reason }),
      next_action: status === 'auth_required' ? command('bridge secret-bindings list', id) : nextOf(status, id),
    })
  }
  return found
}

const nextOf = (status: 'degraded' | 'error', id: string): string =>
  status === 'error' ? command('bridge restart', id) : command('bridge verify', id)
