import { type KernelOf, Settings } from '../../../kernel/plugin.js'
import { Vault } from '../../access/vault/api.js'
import { Agents } from '../../agents/agents/api.js'
import { Daemon } from '../../desk/daemon/api.js'
import { Workspaces } from '../../desk/workspaces/api.js'
import { Configuration } from '../../platform/configuration/api.js'
import { Events } from '../../platform/events/api.js'
import { Tasks } from '../../work/tasks/api.js'
import { Network } from '../network/api.js'

/** Dependencies of the plugin. */
export const needs = {
  agents: Agents,
  configuration: Configuration,
  daemon: Daemon,
  events: Events,
  network: Network,
  settings: Settings,
  tasks: Tasks,
  vault: Vault,
  workspaces: Workspaces,
}
export type K = KernelOf<typeof needs>
