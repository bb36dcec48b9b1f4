import { type KernelOf, maybe, Settings } from '../../../kernel/plugin.js'
import { Confinement } from '../../access/sandboxes/api.js'
import { Agents } from '../../agents/agents/api.js'
import { Extensions } from '../../delivery/extensions/api.js'
import { Workspaces } from '../../desk/workspaces/api.js'
import { Events } from '../../platform/events/api.js'
import { Processes } from '../../platform/processes/api.js'
import { Network } from '../../reach/network/api.js'
import { Automation } from '../automation/api.js'
import { Sessions } from '../sessions/api.js'
import { Tasks } from '../tasks/api.js'
import { Tools } from '../tools/api.js'

/** Required services of the plugin. */
export const needs = {
  settings: Settings,
  processes: Processes,
  workspaces: Workspaces,
  agents: Agents,
  sessions: Sessions,
  events: Events,
  extensions: maybe(Extensions),
  sandboxes: maybe(Confinement),
  automation: maybe(Automation),
  tasks: maybe(Tasks),
  tools: maybe(Tools),
  network: maybe(Network),
}
export type K = KernelOf<typeof needs>
