import { Faults, Host, type KernelOf, maybe, Settings } from '../../../kernel/plugin.js'
import { Events } from '../../platform/events/api.js'
import { Reconcile } from '../../platform/reconcile/api.js'
import { Sessions } from '../../work/sessions/api.js'
import { Tasks } from '../../work/tasks/api.js'
import { Bridges } from '../bridges/api.js'

/** Dependencies of the plugin. */
export const needs = {
  events: Events,
  faults: Faults,
  host: Host,
  reconcile: Reconcile,
  settings: Settings,
  sessions: maybe(Sessions),
  tasks: maybe(Tasks),
  bridges: maybe(Bridges),
}
export type K = KernelOf<typeof needs>
