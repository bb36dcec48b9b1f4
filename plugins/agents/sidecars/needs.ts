import { type KernelOf, Settings } from '../../../kernel/plugin.js'
import { Workspaces } from '../../desk/workspaces/api.js'
import { Events } from '../../platform/events/api.js'
import { Sessions } from '../../work/sessions/api.js'
import { Agents } from '../agents/api.js'

/** Dependencies of the plugin. */
export const needs = { settings: Settings, agents: Agents, events: Events, sessions: Sessions, workspaces: Workspaces }
export type K = KernelOf<typeof needs>
