/** Hooks, their events and their runs on the wire. */
import * as v from 'valibot'
import { HookEvent } from '../hooks.js'
import { Integer, queryBoolean, queryInteger, StringMap, Timestamp } from '../kernel/common.js'
import { HookMatcher } from '../settings/hooks.js'

const optionalText = v.optional(v.pipe(v.string(), v.maxLength(512)))

export const HookSourceName = v.picklist(['native', 'config', 'extension', 'agent_definition', 'skill'])
export const HookOutcomeName = v.picklist(['applied', 'denied', 'failed', 'skipped', 'dropped', 'rejected'])

/** Which hooks are listed. */
export const HookCatalogQuery = v.object({
  /** Id, name or path. */
  workspace: v.optional(v.pipe(v.string(), v.maxLength(4096))),
  agent: optionalText,
  event: v.optional(v.pipe(HookEvent, v.description('one of svc hooks events'))),
  source: v.optional(HookSourceName),
  mode: v.optional(v.picklist(['sync', 'async'])),
})
export type HookCatalogQuery = v.InferOutput<typeof HookCatalogQuery>

/** A hook as it is in force, with its place in the order of its event. */
export const HookCatalogEntry = v.object({
  name: v.string(),
  event: HookEvent,
  source: HookSourceName,
  /** Whose it is: a plugin, an extension, an agent. */
  owner: v.optional(v.string()),
  mode: v.picklist(['sync', 'async']),
  required: v.boolean(),
  enabled: v.boolean(),
  order: Integer,
  priority: Integer,
  executor_kind: v.picklist(['native', 'subprocess']),
  /** The program stays and is asked line by line. */
  warm: v.optional(v.boolean()),
  command: v.optional(v.string()),
  /** The process of this extension answers, in the place of a program. */
  extension: v.optional(v.string()),
  timeout_ms: Integer,
  matcher: HookMatcher,
  metadata: v.optional(StringMap),
  /** Where the skill of a hook comes from. */
  skill_source: v.optional(v.string()),
  workspace_id: v.optional(v.string()),
  shadowed_sources: v.optional(v.array(HookSourceName)),
  /** Which work of agents the event reaches. */
  reach: v.string(),
})
export type HookCatalogEntry = v.InferOutput<typeof HookCatalogEntry>
export const HookCatalogReply = v.object({ hooks: v.array(HookCatalogEntry) })

export const HookEventsQuery = v.object({
  family: v.optional(v.pipe(v.string(), v.maxLength(64))),
  sync_only: v.optional(queryBoolean()),
})
export type HookEventsQuery = v.InferOutput<typeof HookEventsQuery>

/** An event that hooks can be declared for. */
export const HookEventEntry = v.object({
  event: HookEvent,
  family: v.string(),
  /** Names the form of what hooks are told. */
  payload_schema: v.string(),
  /** Names what an answer may change; absent: nothing. */
  patch_schema: v.optional(v.string()),
  patch_members: v.optional(v.array(v.string())),
  matcher_fields: v.array(v.string()),
  sync_eligible: v.boolean(),
  /** False: the daemon does not tell of it yet. */
  emitted: v.boolean(),
  reach: v.string(),
})
export type HookEventEntry = v.InferOutput<typeof HookEventEntry>
export const HookEventsReply = v.object({ events: v.array(HookEventEntry) })

export const HookRunsQuery = v.object({
  /** Id of a session; `none` for runs that are about no session. */
  session: v.pipe(v.string(), v.minLength(1), v.maxLength(128)),
  event: v.optional(v.pipe(HookEvent, v.description('one of svc hooks events'))),
  outcome: v.optional(HookOutcomeName),
  since: v.optional(Timestamp),
  last: v.optional(queryInteger(1, 1000)),
})
export type HookRunsQuery = v.InferOutput<typeof HookRunsQuery>

/** One execution of a hook, or why there was none. */
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
