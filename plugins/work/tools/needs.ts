import { type KernelOf, Requests } from '../../../kernel/plugin.js'
import { Agents } from '../../agents/agents/api.js'
import { Extensions } from '../../delivery/extensions/api.js'
import { Workspaces } from '../../desk/workspaces/api.js'
import { Events } from '../../platform/events/api.js'
import { Sessions } from '../sessions/api.js'

/** Dependencies of the plugin. */
export const needs = {
  request: Requests,
  sessions: Sessions,
  agents: Agents,
  workspaces: Workspaces,
  extensions: Extensions,
  events: Events,
}
export type K = KernelOf<typeof needs>
