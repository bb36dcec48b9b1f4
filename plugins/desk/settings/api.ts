import { type Fault, token } from '../../../kernel/plugin.js'

/** What the configuration files of workspaces say, for plugins that work in workspaces. */
export interface WorkspaceSettingsApi {
  readonly overlays: {
    /** Why no session may be made in a workspace: its configuration is not valid; undefined where it is, or has no effect. */
    refusal(workspaceId: string): Promise<Fault | undefined>
  }
}

export const WorkspaceSettings = token<WorkspaceSettingsApi>('settings.workspaces@1')
