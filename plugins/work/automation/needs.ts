import { DiskSpace, type KernelOf, maybe } from '../../../kernel/plugin.js'
import { Vault } from '../../access/vault/api.js'
import { Agents } from '../../agents/agents/api.js'
import { Archives } from '../../desk/archives/api.js'
import { Daemon } from '../../desk/daemon/api.js'
import { Workspaces } from '../../desk/workspaces/api.js'
import { Configuration } from '../../platform/configuration/api.js'
import { Events } from '../../platform/events/api.js'
import { Reconcile } from '../../platform/reconcile/api.js'
import { Sessions } from '../sessions/api.js'
import { Tasks } from '../tasks/api.js'

/** Required services of the plugin. */
export const needs = {
  configuration: maybe(Configuration),
  disk: DiskSpace,
  daemon: Daemon,
  events: Events,
  reconcile: Reconcile,
  sessions: Sessions,
  workspaces: Workspaces,
  agents: maybe(Agents),
  vault: maybe(Vault),
  tasks: maybe(Tasks),
  archives: maybe(Archives),
}
export type K = KernelOf<typeof needs>
