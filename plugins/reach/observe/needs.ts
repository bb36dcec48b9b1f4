import { type KernelOf, maybe } from '../../../kernel/plugin.js'
import { Workspaces } from '../../desk/workspaces/api.js'
import { Events } from '../../platform/events/api.js'
import { Sessions } from '../../work/sessions/api.js'
import { Tasks } from '../../work/tasks/api.js'

/** What the plugin requires. Without sessions or tasks their part of the overview is empty. */
export const needs = { events: Events, workspaces: Workspaces, sessions: maybe(Sessions), tasks: maybe(Tasks) }
export type K = KernelOf<typeof needs>
