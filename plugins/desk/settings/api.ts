import {
  type Actor,
  type Fault,
  type InjectReply,
  type InjectRequest,
  type Setting,
  token,
} from '../../../kernel/plugin.js'
import type { SettingKey } from '../../../schemas/settings.js'

/** The configuration files of workspaces, for plugins that work in workspaces. */
export interface WorkspaceSettingsApi {
  readonly overlays: {
    /** Why no session may start in a workspace: its configuration is invalid. Undefined if it is valid or has no effect. */
    refusal(workspaceId: string): Promise<Fault | undefined>
  }
}

export const WorkspaceSettings = token<WorkspaceSettingsApi>('settings.workspaces@1')

/** Effective value of a setting in a workspace; undefined if the plugin `settings` does not run. */
export async function settingIn<T>(
  request: (request: InjectRequest, as: Actor) => Promise<InjectReply>,
  actor: Actor,
  { path }: Setting<T>,
  workspaceId: string,
): Promise<T | undefined> {
  const url = `/api/settings/keys/${path}?workspace_id=${encodeURIComponent(workspaceId)}`
  const { status, body } = await request({ method: 'GET', url }, actor)
  return status === 200 ? ((JSON.parse(body) as SettingKey).value as T) : undefined
}
