import { type KernelOf, maybe } from '../../../kernel/plugin.js'
import { Bundles } from '../../delivery/bundles/api.js'
import { Daemon } from '../../desk/daemon/api.js'
import { Workspaces } from '../../desk/workspaces/api.js'
import { Events } from '../../platform/events/api.js'
import { Sessions } from '../../work/sessions/api.js'
import { Tasks } from '../../work/tasks/api.js'

/** Dependencies of the plugin. */
export const needs = {
  bundles: maybe(Bundles),
  daemon: Daemon,
  events: Events,
  sessions: Sessions,
  tasks: maybe(Tasks),
  workspaces: Workspaces,
}
export type K = KernelOf<typeof needs>
