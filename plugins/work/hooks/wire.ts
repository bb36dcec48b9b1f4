import type { HookCatalogEntry, HookEventEntry } from '../../../schemas/hooks/replies.js'
import { HookEvent } from '../../../schemas/hooks.js'
import type { Resolved } from './declared.js'
import { familyOf, fieldsOf } from './families.js'
import { hookEvents, reachOf } from './hook-events.js'

export function entryToWire(
  { hook, shadowed }: Resolved,
  order: number,
  warnings: readonly string[],
): HookCatalogEntry {
  const { name, event, source, owner, mode, required, enabled, priority, timeoutMs, matcher, metadata, executor } = hook
  return {
    ...{ name, event, source, mode, required, enabled, order, priority },
    ...(owner !== '' && { owner }),
    executor_kind: executor.kind === 'native' ? 'native' : 'subprocess',
    ...(executor.kind === 'extension' && { warm: true, extension: executor.key }),
    ...(executor.kind === 'subprocess' && {
      warm: executor.warm,
      command: [executor.command, ...executor.args].join(' '),
    }),
    timeout_ms: timeoutMs,
    matcher: matcher as HookCatalogEntry['matcher'],
    metadata: { ...metadata },
    ...(source === 'skill' && { skill_source: metadata.skill_source ?? owner }),
    ...(hook.workspaceId !== undefined && { workspace_id: hook.workspaceId }),
    ...(shadowed.length > 0 && { shadowed_sources: shadowed.map(other => other.source) }),
    reach: reachOf(event),
    ...(warnings.length > 0 && { warnings: [...warnings] }),
  }
}

/** The event catalog in wire form. */
export const eventEntries = (): HookEventEntry[] =>
  HookEvent.options.map(event => {
    const { sync, patch, emitted } = hookEvents[event]
    return {
      event,
      family: familyOf(event),
      payload_schema: `svc.hook.${event}.payload.v1`,
      ...(patch.length > 0 && { patch_schema: `svc.hook.${event}.patch.v1`, patch_members: [...patch] }),
      matcher_fields: [...fieldsOf(event)],
      sync_eligible: sync,
      emitted,
      reach: reachOf(event),
    }
  })
