import type { KernelOf } from '../../../kernel/plugin.js'
import { Agents } from '../../agents/agents/api.js'
import { Workspaces } from '../../desk/workspaces/api.js'
import { Reconcile } from '../../platform/reconcile/api.js'
import { Extensions } from '../extensions/api.js'

/** Dependencies of the plugin. */
export const needs = { agents: Agents, extensions: Extensions, reconcile: Reconcile, workspaces: Workspaces }
export type K = KernelOf<typeof needs>
