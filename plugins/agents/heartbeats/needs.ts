import { DiskSpace, type KernelOf } from '../../../kernel/plugin.js'
import { Daemon } from '../../desk/daemon/api.js'
import { Workspaces } from '../../desk/workspaces/api.js'
import { Events } from '../../platform/events/api.js'
import { Sessions } from '../../work/sessions/api.js'
import { Sidecars } from '../sidecars/api.js'

/** Dependencies of the plugin. */
export const needs = {
  disk: DiskSpace,
  daemon: Daemon,
  events: Events,
  workspaces: Workspaces,
  sessions: Sessions,
  sidecars: Sidecars,
}
export type K = KernelOf<typeof needs>
