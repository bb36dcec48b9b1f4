import { command, placeholder } from '../../../kernel/kit/commands/command-line.js'
import { defineErrors } from '../../../kernel/plugin.js'
import { REFERENCE_ERRORS } from '../../desk/workspaces/api.js'

export const ExtensionErrors = defineErrors({
  extension_state_invalid: { status: 400, message: 'the key or the value is not valid' },
  extension_not_found: { status: 404, message: 'no such extension', next: command('extension list') },
  extension_manifest_missing: {
    status: 422,
    message: 'the folder has no extension.toml and no extension.json',
    next: command('extension init', placeholder('name')),
  },
  extension_manifest_invalid: { status: 422, message: 'the manifest is not valid' },
  extension_name_mismatch: { status: 422, message: 'the manifest has another name than its folder' },
  extension_version_unsupported: {
    status: 422,
    message: 'the extension requires a newer svc',
    next: command('version'),
  },
  extension_path_escape: { status: 422, message: 'a path in the manifest leads out of the extension' },
  extension_tier_refused: { status: 422, message: 'an extension from this source is not allowed to do that' },
  extension_too_large: { status: 422, message: 'the folder of the extension is too large' },
  extension_changing: { status: 422, message: 'the folder changed while it was read; it is read again' },
  extension_loading: { status: 503, message: 'the extension is being loaded; try again' },
  extension_not_loaded: { status: 503, message: 'the extension is installed and not loaded', next: command('doctor') },
  extension_load_failed: { status: 422, message: 'the extension did not load', next: command('extension list') },
  extension_launch_invalid: {
    status: 422,
    message: 'the process of the extension cannot be started as the manifest says',
  },
  extension_not_running: {
    status: 503,
    message: 'the process of the extension does not run now',
    next: command('extension list'),
  },
  extension_busy: { status: 503, message: 'the process of the extension has too many requests to answer; try again' },
  extension_method_missing: { status: 422, message: 'the extension does not implement that' },
  extension_call_failed: { status: 500, message: 'the extension did not carry out the request' },
  extension_exists: { status: 409, message: 'the folder already exists', next: 'name another folder with --dir' },
  extension_bundler_missing: {
    status: 422,
    message: 'TypeScript is bundled with esbuild, which the folder has to have',
    next: 'npm install --save-dev esbuild',
  },
  extension_name_invalid: { status: 422, message: 'the name is not a valid extension name' },
  extension_not_built: {
    status: 422,
    message: 'main is missing: it must be bundled from its TypeScript source',
    next: command('extension build'),
  },
  extension_build_failed: { status: 422, message: 'the source of the extension cannot be bundled' },
  extension_publish_invalid: {
    status: 422,
    message: 'the extension cannot be published there',
    next: command('extension publish', '--help'),
  },
  extension_consent_required: {
    status: 409,
    message: 'the extension contains parts that require consent; review them, then repeat with consent_digest',
    next: command('extension install', placeholder('source')),
  },
  extension_in_use: { status: 409, message: 'other parts of the daemon depend on the extension' },
  extension_disabled: {
    status: 409,
    message: 'the extension is disabled',
    next: command('extension enable', placeholder('name')),
  },
  extension_record_taken: {
    status: 409,
    message: 'a record with that id belongs to another owner',
    next: command('extension list'),
  },
  extension_env_undeclared: { status: 400, message: 'the manifest declares no such variable' },
  extension_binding_not_found: { status: 404, message: 'the variable has no source' },
  extension_dev_invalid: { status: 400, message: 'the folder cannot be linked' },
  extension_network_unconfirmed: {
    status: 409,
    message: 'the extension takes part in the network, which requires confirmation; repeat with confirm_network_digest',
  },
  extension_dev_taken: {
    status: 409,
    message: 'another build of this extension already has a resource that can exist only once',
  },
  extension_ambiguous: { status: 409, message: 'several builds have this name', next: command('extension list') },
  extension_generation_stale: { status: 409, message: 'the folder contains a different build than the named one' },
  extension_secret_foreign: { status: 400, message: 'this secret belongs to another owner' },
  vault_unavailable: {
    status: 503,
    message: 'the plugin vault does not run, so no value can be stored',
    next: command('plugin show', 'vault'),
  },
})

export const StateErrors = defineErrors({
  extension_state_too_large: { status: 413, message: 'the extension exceeds its storage limit' },
})

/** Errors of a request that names an extension, and the workspace of its link. */
export const NAMED_ERRORS = [
  ExtensionErrors.extension_not_found,
  ExtensionErrors.extension_ambiguous,
  ExtensionErrors.extension_dev_invalid,
  ...REFERENCE_ERRORS,
] as const

/** Errors of a manifest that cannot be read. */
export const MANIFEST_ERRORS = [
  ExtensionErrors.extension_manifest_missing,
  ExtensionErrors.extension_manifest_invalid,
] as const
