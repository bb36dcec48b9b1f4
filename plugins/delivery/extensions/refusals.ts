import { BundleErrors } from '../bundles/api.js'
import { ExtensionErrors, MANIFEST_ERRORS } from './errors.js'

/** Errors of reading a folder completely. */
export const TREE_ERRORS = [ExtensionErrors.extension_too_large, ExtensionErrors.extension_changing] as const

/** Why the content of a folder is not loaded; nothing of it has run. */
export const PLAN_ERRORS = [
  ...MANIFEST_ERRORS,
  ...TREE_ERRORS,
  ExtensionErrors.extension_name_mismatch,
  ExtensionErrors.extension_version_unsupported,
  ExtensionErrors.extension_tier_refused,
  ExtensionErrors.extension_path_escape,
  ExtensionErrors.extension_not_built,
  BundleErrors.bundle_invalid,
] as const

/** Why an extension does not run after its folder was read. */
export const LOAD_ERRORS = [
  ...PLAN_ERRORS,
  ExtensionErrors.extension_consent_required,
  ExtensionErrors.extension_load_failed,
  ExtensionErrors.extension_network_unconfirmed,
  ExtensionErrors.extension_dev_taken,
  ExtensionErrors.extension_record_taken,
] as const
