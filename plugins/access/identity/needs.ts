import { Callers, Sockets } from '../../../kernel/platform.js'
import type { KernelOf } from '../../../kernel/plugin.js'
import { Events } from '../../platform/events/api.js'
import { Processes } from '../../platform/processes/api.js'
import { Sessions } from '../../work/sessions/api.js'
import { Auth } from '../auth/api.js'

/** APIs that the plugin requires. */
export const needs = {
  sessions: Sessions,
  auth: Auth,
  sockets: Sockets,
  callers: Callers,
  processes: Processes,
  events: Events,
}
export type K = KernelOf<typeof needs>
