import { type KernelOf, maybe } from '../../../kernel/plugin.js'
import { Providers } from '../../agents/providers/api.js'
import { SettingKeys } from '../../desk/settings/api.js'
import { Workspaces } from '../../desk/workspaces/api.js'
import { Processes } from '../../platform/processes/api.js'

/** Required services of the plugin. */
export const needs = {
  providers: Providers,
  workspaces: Workspaces,
  processes: Processes,
  settings: maybe(SettingKeys),
}
export type K = KernelOf<typeof needs>
