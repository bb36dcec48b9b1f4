import {
  type Actor,
  type Fault,
  type InjectReply,
  type InjectRequest,
  type Setting,
  token,
} from '../../../kernel/plugin.js'
import type { PutProviderBody } from '../../../schemas/settings/entries.js'
import type { ApplyOutcome, PatchKeysBody, SettingKey } from '../../../schemas/settings.js'

/** Settings of the home and of workspaces, for plugins that work in workspaces or change settings for a caller. */
export interface SettingKeysApi {
  readonly overlays: {
    /** Why no session may start in a workspace: its configuration is invalid. Undefined if it is valid or has no effect. */
    refusal(workspaceId: string): Promise<Fault | undefined>
  }
  /** Effective value of a setting in a workspace; undefined if there is no such workspace. */
  valueIn<T>(setting: Setting<T>, workspaceId: string): Promise<T | undefined>
  /**
   * Changes keys of one file atomically, with the checks, the change record and the faults of the route for keys. The change is
   * undone by the undo of the calling route.
   */
  patchKeys(body: PatchKeysBody, actor: Actor): Promise<ApplyOutcome>
  /** Creates or replaces the configuration entry of a provider; the operation of its route. */
  putProvider(name: string, body: PutProviderBody, actor: Actor): Promise<ApplyOutcome>
}

/** The request that shows the entry of a provider, for the undo of a change of it. */
export const providerRequest = (name: string): string => `/api/settings/providers/${encodeURIComponent(name)}`

/** Errors of {@link SettingKeysApi.patchKeys}. */
export { ofWorkspaceConfig as CONFIG_ERRORS, ofWorkspaceWriting as SETTING_ERRORS } from './errors.js'

export const SettingKeys = token<SettingKeysApi>('settings.keys@1')

/** The former name of {@link SettingKeys}, for extensions. */
export const WorkspaceSettings = SettingKeys

/** The former {@link SettingKeysApi.valueIn}, for extensions: effective value of a setting in a workspace. */
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
