import { Host, type KernelOf, maybe } from '../../../kernel/plugin.js'
import { Daemon } from '../../desk/daemon/api.js'
import { Workspaces } from '../../desk/workspaces/api.js'
import { Events } from '../../platform/events/api.js'
import { Automation } from '../../work/automation/api.js'
import { Sessions } from '../../work/sessions/api.js'
import { Tasks } from '../../work/tasks/api.js'
import { Bridges } from '../bridges/api.js'

/** Dependencies of the plugin. */
export const needs = {
  host: Host,
  daemon: Daemon,
  events: Events,
  workspaces: maybe(Workspaces),
  sessions: maybe(Sessions),
  tasks: maybe(Tasks),
  automation: maybe(Automation),
  bridges: maybe(Bridges),
}
export type K = KernelOf<typeof needs>
