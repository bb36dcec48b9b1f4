import { command, placeholder } from '../../../kernel/kit/commands/command-line.js'
import { defineErrors } from '../../../kernel/plugin.js'
import { TrustErrors } from '../../access/trust/api.js'
import { ConfigErrors } from '../../platform/configuration/api.js'
import { REFERENCE_ERRORS } from '../workspaces/api.js'

export const SettingsErrors = defineErrors({
  settings_unavailable: {
    status: 503,
    message: 'the plugin of these settings does not run',
    next: command('plugin list'),
  },
  config_reload_invalid: {
    status: 400,
    message: 'config.json is not valid; the values in force stay as they are',
    next: command('config check'),
  },
  setting_not_found: { status: 404, message: 'there is no such setting', next: command('config list') },
  setting_entry_not_found: { status: 404, message: 'there is no entry of this name in the configuration' },
  setting_in_use: { status: 409, message: 'this entry is in use' },
  settings_target_invalid: { status: 400, message: 'this cannot be written to that file' },
  settings_scope_invalid: { status: 400, message: 'this section has no settings of that scope' },
  workspace_config_invalid: {
    status: 422,
    message: 'the configuration of this workspace is not valid, so no session starts in it',
    next: command('doctor', '--only', 'config'),
  },
  workspace_untrusted: {
    status: 409,
    message: 'the files of this workspace have no effect until the workspace is trusted',
    next: command('workspace trust', placeholder('workspace')),
  },
})

/** Why no session starts in a workspace. */
export const ofWorkspaceConfig = [SettingsErrors.workspace_config_invalid] as const

/** Errors of a route that reads a section, in the home or a workspace. */
export const ofSection = [
  SettingsErrors.settings_unavailable,
  SettingsErrors.settings_scope_invalid,
  SettingsErrors.settings_target_invalid,
  ...REFERENCE_ERRORS,
] as const

/** Errors of a route that changes `config.json`. */
export const ofWriting = [
  ConfigErrors.setting_unknown,
  ConfigErrors.setting_invalid,
  ConfigErrors.setting_not_overlaid,
  ConfigErrors.config_changed,
  ConfigErrors.config_ambiguous,
  ConfigErrors.config_file_invalid,
  SettingsErrors.settings_unavailable,
  SettingsErrors.settings_target_invalid,
] as const

/** Errors of a route that may change the file of a workspace, too. */
export const ofWorkspaceWriting = [
  ...ofWriting,
  SettingsErrors.setting_not_found,
  SettingsErrors.settings_scope_invalid,
  SettingsErrors.workspace_untrusted,
  TrustErrors.trust_unreadable,
  ...REFERENCE_ERRORS,
] as const
