/** Wire schemas of hooks, hook events and hook runs. */
import * as v from 'valibot'
import { HOOK_FAMILIES, HookEvent } from '../hooks.js'
import { Integer, queryBoolean, queryInteger, StringMap, Timestamp } from '../kernel/common.js'
import { HookMatcher } from '../settings/hooks.js'

export const HookSourceName = v.picklist(['native', 'config', 'extension', 'agent_definition', 'skill'])
export const HookOutcomeName = v.picklist(['applied', 'denied', 'failed', 'skipped', 'dropped', 'rejected'])

/** Query of the hook list. */
export const HookCatalogQuery = v.object({
  workspace: v.optional(
    v.pipe(v.string(), v.maxLength(4096), v.description('include the hooks of this workspace (id, name or path)')),
  ),
  agent: v.optional(v.pipe(v.string(), v.maxLength(512), v.description('include the hooks of this agent'))),
  event: v.optional(v.pipe(HookEvent, v.description('filter by event; see svc hooks events'))),
  source: v.optional(v.pipe(HookSourceName, v.description('filter by source'))),
  mode: v.optional(v.pipe(v.picklist(['sync', 'async']), v.description('filter by mode'))),
})
export type HookCatalogQuery = v.InferOutput<typeof HookCatalogQuery>

/** An active hook with its position in the execution order of its event. */
export const HookCatalogEntry = v.object({
  name: v.string(),
  event: HookEvent,
  source: HookSourceName,
  /** The plugin, extension, agent or skill that declares it. */
  owner: v.optional(v.string()),
  mode: v.picklist(['sync', 'async']),
  required: v.boolean(),
  enabled: v.boolean(),
  order: Integer,
  priority: Integer,
  executor_kind: v.picklist(['native', 'subprocess']),
  /** The program keeps running and reads one JSON line per event. */
  warm: v.optional(v.boolean()),
  command: v.optional(v.string()),
  /** Handled by the process of this extension instead of a program. */
  extension: v.optional(v.string()),
  timeout_ms: Integer,
  matcher: HookMatcher,
  metadata: v.optional(StringMap),
  /** Source of the skill that declares it. */
  skill_source: v.optional(v.string()),
  workspace_id: v.optional(v.string()),
  shadowed_sources: v.optional(v.array(HookSourceName)),
  /** Agents and actions that the event covers. */
  reach: v.string(),
  /** Matcher values without any match, and sessions that a guard does not cover yet. */
  warnings: v.optional(v.array(v.string())),
})
export type HookCatalogEntry = v.InferOutput<typeof HookCatalogEntry>
export const HookCatalogReply = v.object({ hooks: v.array(HookCatalogEntry) })

export const HookEventsQuery = v.object({
  family: v.optional(
    v.pipe(v.picklist(HOOK_FAMILIES), v.description('filter by event family, such as session or task.run')),
  ),
  sync_only: v.optional(v.pipe(queryBoolean(), v.description('show only events that support sync hooks'))),
})
export type HookEventsQuery = v.InferOutput<typeof HookEventsQuery>

/** An event that hooks can subscribe to. */
export const HookEventEntry = v.object({
  event: HookEvent,
  family: v.string(),
  /** Name of the payload schema. */
  payload_schema: v.string(),
  /** Name of the patch schema; absent for observation-only events. */
  patch_schema: v.optional(v.string()),
  patch_members: v.optional(v.array(v.string())),
  matcher_fields: v.array(v.string()),
  sync_eligible: v.boolean(),
  /** False for events that the daemon does not emit yet. */
  emitted: v.boolean(),
  reach: v.string(),
})
export type HookEventEntry = v.InferOutput<typeof HookEventEntry>
export const HookEventsReply = v.object({ events: v.array(HookEventEntry) })

export const HookRunsQuery = v.object({
  /** Session id, or `none` for runs without a session. */
  session: v.pipe(v.string(), v.minLength(1), v.maxLength(128)),
  event: v.optional(v.pipe(HookEvent, v.description('filter by event; see svc hooks events'))),
  outcome: v.optional(v.pipe(HookOutcomeName, v.description('filter by outcome'))),
  since: v.optional(v.pipe(Timestamp, v.description('only runs recorded at or after this time'))),
  last: v.optional(v.pipe(queryInteger(1, 1000), v.description('number of newest runs to show; default 100'))),
})
export type HookRunsQuery = v.InferOutput<typeof HookRunsQuery>

/** A hook run, or why the hook did not run. */
export const HookRunWire = v.object({
  hook_name: v.string(),
  event: v.string(),
  source: v.string(),
  mode: v.string(),
  outcome: v.string(),
  required: v.boolean(),
  dispatch_depth: Integer,
  duration_ms: Integer,
  duration_us: Integer,
  recorded_at: Timestamp,
  error: v.optional(v.string()),
  patch_applied: v.optional(v.unknown()),
})
export type HookRunWire = v.InferOutput<typeof HookRunWire>
export const HookRunsReply = v.object({ runs: v.array(HookRunWire) })
