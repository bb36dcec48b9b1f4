import { type KernelOf, Settings } from '../../../kernel/plugin.js'
import { Events } from '../../platform/events/api.js'
import { Workspaces } from '../workspaces/api.js'

/** APIs that the plugin requires. */
export const needs = { settings: Settings, events: Events, workspaces: Workspaces }
export type K = KernelOf<typeof needs>
