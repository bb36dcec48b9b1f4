/** Plugins and their resources: `svc plugin list`, `svc plugin show`. */
import * as v from 'valibot'
import { Integer, queryBoolean, Timestamp } from '../kernel/common.js'

const base = {
  name: v.string(),
  version: v.string(),
  state: v.picklist(['active', 'waiting', 'failed', 'disabled']),
  /** Why it is not running. */
  reason: v.optional(v.string()),
  /** The plugin that replaces it. */
  replaced_by: v.optional(v.string()),
}

/** A plugin in a list, with counts of its resources and faults. */
export const PluginSummary = v.object({ ...base, holds: Integer, faults: Integer })
export type PluginSummary = v.InferOutput<typeof PluginSummary>

/** A fault of a plugin, with the number of its occurrences. */
export const PluginFault = v.object({ at: Timestamp, count: Integer, where: v.string(), error: v.string() })
export type PluginFault = v.InferOutput<typeof PluginFault>

/** Something that a plugin offers to others. */
export const PluginOffer = v.object({
  /**
   * `hook`: a hook that it created; `tapped`: members of its service that run hooks. `entries`: it contributes to a registry of
   * another plugin.
   */
  what: v.picklist([
    'service',
    'route',
    'command',
    'tool',
    'kind',
    'event',
    'setting',
    'error',
    'hook',
    'tapped',
    'registry',
    'entries',
    'table',
  ]),
  name: v.string(),
  about: v.optional(v.string()),
  /** Active plugins that require it, tap it or contribute to it. */
  used_by: v.optional(v.array(v.string())),
})
export type PluginOffer = v.InferOutput<typeof PluginOffer>

/** All details of a plugin. */
export const PluginDetail = v.object({
  ...base,
  /** Required tokens; an optional one ends in `?`. */
  requires: v.array(v.string()),
  provides: v.optional(v.string()),
  /** Registries that it contributes to but that no active plugin declares; the contributions wait. */
  unclaimed: v.array(v.string()),
  /** Taps, loops, processes and other resources that end with it, the oldest first. */
  holds: v.array(v.string()),
  faults: v.array(PluginFault),
  /** Only on request. */
  surface: v.optional(v.array(PluginOffer)),
})
export type PluginDetail = v.InferOutput<typeof PluginDetail>

/** GET /api/plugins */
export const PluginListReply = v.object({ plugins: v.array(PluginSummary) })
export type PluginListReply = v.InferOutput<typeof PluginListReply>

/** Query of GET /api/plugins/{name}. */
export const PluginQuery = v.object({
  surface: v.optional(v.pipe(queryBoolean(), v.description('also list its routes, hooks and registries'))),
})
export type PluginQuery = v.InferOutput<typeof PluginQuery>

/** GET /api/plugins/{name} */
export const PluginReply = v.object({ plugin: PluginDetail })
export type PluginReply = v.InferOutput<typeof PluginReply>
