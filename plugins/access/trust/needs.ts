import { type KernelOf, maybe } from '../../../kernel/plugin.js'
import { Workspaces } from '../../desk/workspaces/api.js'
import { Hooks } from '../../work/hooks/api.js'

/** APIs that the plugin requires. */
export const needs = { workspaces: Workspaces, hooks: maybe(Hooks) }
export type K = KernelOf<typeof needs>
