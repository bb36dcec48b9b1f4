import { DiskSpace, type KernelOf, maybe } from '../../../kernel/plugin.js'
import { Archives } from '../../desk/archives/api.js'
import { Daemon } from '../../desk/daemon/api.js'
import { Workspaces } from '../../desk/workspaces/api.js'
import { Events } from '../../platform/events/api.js'
import { Ownership } from '../../platform/ownership/api.js'
import { Sessions } from '../sessions/api.js'

/** Required services of the plugin. */
export const needs = {
  archives: maybe(Archives),
  disk: DiskSpace,
  daemon: Daemon,
  events: Events,
  ownership: Ownership,
  sessions: Sessions,
  workspaces: Workspaces,
}
export type K = KernelOf<typeof needs>
