import { type KernelOf, maybe, Settings } from '../../../kernel/plugin.js'
import { SettingKeys } from '../../desk/settings/api.js'
import { Workspaces } from '../../desk/workspaces/api.js'
import { Events } from '../../platform/events/api.js'
import { Hooks } from '../../work/hooks/api.js'
import { Sessions } from '../../work/sessions/api.js'
import { Tools } from '../../work/tools/api.js'
import { Agents } from '../agents/api.js'

/** Dependencies of the plugin. */
export const needs = {
  agents: maybe(Agents),
  events: Events,
  hooks: maybe(Hooks),
  settings: Settings,
  keys: maybe(SettingKeys),
  sessions: maybe(Sessions),
  tools: maybe(Tools),
  workspaces: Workspaces,
}
export type K = KernelOf<typeof needs>
