import type { KernelOf } from '../../../kernel/plugin.js'
import { Workspaces } from '../../desk/workspaces/api.js'
import { Configuration } from '../../platform/configuration/api.js'
import { Sessions } from '../../work/sessions/api.js'
import { Agents } from '../agents/api.js'
import { Sidecars } from '../sidecars/api.js'

/** Dependencies of the plugin. */
export const needs = {
  sessions: Sessions,
  agents: Agents,
  workspaces: Workspaces,
  sidecars: Sidecars,
  configuration: Configuration,
}
export type K = KernelOf<typeof needs>
