import { Callers } from '../../../kernel/platform.js'
import { Host, type KernelOf, maybe, Requests } from '../../../kernel/plugin.js'
import { Confinement } from '../../access/sandboxes/api.js'
import { Daemon } from '../../desk/daemon/api.js'
import { Events } from '../../platform/events/api.js'
import { Processes } from '../../platform/processes/api.js'
import { Sessions } from '../../work/sessions/api.js'

/** Dependencies of the plugin; the daemon has the setting of failed health checks. */
export const needs = {
  host: Host,
  request: Requests,
  callers: Callers,
  daemon: Daemon,
  events: Events,
  processes: Processes,
  sandboxes: maybe(Confinement),
  sessions: maybe(Sessions),
}
export type K = KernelOf<Omit<typeof needs, 'daemon'>>
