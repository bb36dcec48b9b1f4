/** Plugins and what they hold: `svc plugin list`, `svc plugin show`. */
import * as v from 'valibot'
import { Integer, queryBoolean, Timestamp } from '../kernel/common.js'

const base = {
  name: v.string(),
  version: v.string(),
  state: v.picklist(['active', 'waiting', 'failed', 'disabled']),
  /** Why it does not run. */
  reason: v.optional(v.string()),
  /** The plugin that runs in its place. */
  replaced_by: v.optional(v.string()),
}

/** A plugin in a list: how much it holds, how often it failed. */
export const PluginSummary = v.object({ ...base, holds: Integer, faults: Integer })
export type PluginSummary = v.InferOutput<typeof PluginSummary>

/** What a plugin did wrong, and how often the same. */
export const PluginFault = v.object({ at: Timestamp, count: Integer, where: v.string(), error: v.string() })
export type PluginFault = v.InferOutput<typeof PluginFault>

/** What a plugin offers to others. */
export const PluginOffer = v.object({
  /**
   * `hook` is one that it made, `tapped` the members of its service that lead others to one. `entries` says that it fills a registry of
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
  /** Plugins that require it, tap it or contribute to it now. */
  used_by: v.optional(v.array(v.string())),
})
export type PluginOffer = v.InferOutput<typeof PluginOffer>

/** All that is known of a plugin. */
export const PluginDetail = v.object({
  ...base,
  /** Tokens; one that it can do without ends in `?`. */
  requires: v.array(v.string()),
  provides: v.optional(v.string()),
  /** Registries that it contributes to and that nobody who runs declares: what it contributes waits. */
  unclaimed: v.array(v.string()),
  /** Taps, loops, processes and whatever else goes when it goes, oldest first. */
  holds: v.array(v.string()),
  faults: v.array(PluginFault),
  /** Only where it is asked for. */
  surface: v.optional(v.array(PluginOffer)),
})
export type PluginDetail = v.InferOutput<typeof PluginDetail>

/** GET /api/plugins */
export const PluginListReply = v.object({ plugins: v.array(PluginSummary) })
export type PluginListReply = v.InferOutput<typeof PluginListReply>

/** Query of GET /api/plugins/{name}. */
export const PluginQuery = v.object({
  surface: v.optional(v.pipe(queryBoolean(), v.description('also list what it offers: routes, hooks, registries'))),
})
export type PluginQuery = v.InferOutput<typeof PluginQuery>

/** GET /api/plugins/{name} */
export const PluginReply = v.object({ plugin: PluginDetail })
export type PluginReply = v.InferOutput<typeof PluginReply>
