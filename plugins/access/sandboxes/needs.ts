import { type KernelOf, maybe } from '../../../kernel/plugin.js'
import { Providers } from '../../agents/providers/api.js'
import { Extensions } from '../../delivery/extensions/api.js'
import { Workspaces } from '../../desk/workspaces/api.js'
import { Processes } from '../../platform/processes/api.js'
import { Sessions } from '../../work/sessions/api.js'

/** APIs that the plugin requires. */
export const needs = {
  sessions: Sessions,
  providers: Providers,
  workspaces: Workspaces,
  processes: Processes,
  extensions: maybe(Extensions),
}
export type K = KernelOf<typeof needs>
