import { type KernelOf, maybe } from '../../../kernel/plugin.js'
import { Extensions } from '../../delivery/extensions/api.js'
import { SettingKeys } from '../../desk/settings/api.js'
import { Processes } from '../../platform/processes/api.js'
import { Providers } from '../providers/api.js'

/** Dependencies of the plugin. */
export const needs = {
  providers: Providers,
  processes: Processes,
  settings: maybe(SettingKeys),
  extensions: maybe(Extensions),
}
export type K = KernelOf<typeof needs>
