import { defineErrors } from '../../kernel/plugin.js'

export const ExtensionErrors = defineErrors({
  extension_not_found: { status: 404, message: 'no such extension', next: 'svc extension list' },
  extension_manifest_missing: { status: 422, message: 'the folder has no extension.toml and no extension.json' },
  extension_manifest_invalid: { status: 422, message: 'the manifest is not valid' },
  extension_name_mismatch: { status: 422, message: 'the manifest has another name than its folder' },
  extension_version_unsupported: { status: 422, message: 'the extension asks for a newer svc', next: 'svc version' },
  extension_path_escape: { status: 422, message: 'a path of the manifest leads out of the extension' },
  extension_tier_refused: { status: 422, message: 'an extension from there may not do that' },
  extension_load_failed: { status: 422, message: 'the extension did not load', next: 'svc extension list' },
})
