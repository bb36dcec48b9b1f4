import { type KernelOf, maybe } from '../../../kernel/plugin.js'
import { Skills } from '../../agents/skills/api.js'
import { Configuration } from '../../platform/configuration/api.js'
import { Events } from '../../platform/events/api.js'
import { Mcp } from '../../work/mcp/api.js'
import { Bundles } from '../bundles/api.js'
import { Extensions } from '../extensions/api.js'

/** Dependencies of the plugin. */
export const needs = {
  bundles: maybe(Bundles),
  configuration: maybe(Configuration),
  events: Events,
  extensions: maybe(Extensions),
  mcp: maybe(Mcp),
  skills: Skills,
}
export type K = KernelOf<typeof needs>
