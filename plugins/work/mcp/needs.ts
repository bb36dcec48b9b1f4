import { Host, type KernelOf, maybe } from '../../../kernel/plugin.js'
import { Confinement } from '../../access/sandboxes/api.js'
import { Vault } from '../../access/vault/api.js'
import { Agents } from '../../agents/agents/api.js'
import { Extensions } from '../../delivery/extensions/api.js'
import { SettingKeys } from '../../desk/settings/api.js'
import { Workspaces } from '../../desk/workspaces/api.js'
import { Events } from '../../platform/events/api.js'
import { Processes } from '../../platform/processes/api.js'
import { Telemetry } from '../../reach/telemetry/api.js'
import { Sessions } from '../sessions/api.js'
import { Tools } from '../tools/api.js'

/** Dependencies of the plugin. */
export const needs = {
  agents: Agents,
  workspaces: Workspaces,
  sessions: Sessions,
  processes: Processes,
  settings: maybe(SettingKeys),
  vault: maybe(Vault),
  host: Host,
  events: Events,
  tools: maybe(Tools),
  sandboxes: maybe(Confinement),
  extensions: maybe(Extensions),
  telemetry: maybe(Telemetry),
}
export type K = KernelOf<typeof needs>
