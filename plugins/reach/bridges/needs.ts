import { Faults, type KernelOf, maybe } from '../../../kernel/plugin.js'
import { Vault } from '../../access/vault/api.js'
import { Extensions } from '../../delivery/extensions/api.js'
import { Daemon } from '../../desk/daemon/api.js'
import { Workspaces } from '../../desk/workspaces/api.js'
import { Events } from '../../platform/events/api.js'
import { Reconcile } from '../../platform/reconcile/api.js'
import { Sessions } from '../../work/sessions/api.js'

/** Dependencies of the plugin. */
export const needs = {
  report: Faults,
  daemon: Daemon,
  events: Events,
  reconcile: Reconcile,
  sessions: maybe(Sessions),
  vault: Vault,
  workspaces: Workspaces,
  extensions: maybe(Extensions),
}
export type K = KernelOf<typeof needs>
