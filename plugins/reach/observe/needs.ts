import { type KernelOf, maybe } from '../../../kernel/plugin.js'
import { Workspaces } from '../../desk/workspaces/api.js'
import { Events } from '../../platform/events/api.js'
import { Sessions } from '../../work/sessions/api.js'
import { Tasks } from '../../work/tasks/api.js'
import { Network } from '../network/api.js'
import { Notifications } from '../notifications/api.js'

/**
 * Dependencies of the plugin. Without sessions, tasks, notifications or the network their part of the overview is
 * empty.
 */
export const needs = {
  events: Events,
  workspaces: Workspaces,
  sessions: maybe(Sessions),
  tasks: maybe(Tasks),
  notifications: maybe(Notifications),
  network: maybe(Network),
}
export type K = KernelOf<typeof needs>
