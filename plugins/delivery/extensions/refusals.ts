import { REFERENCE_ERRORS } from '../../desk/workspaces/api.js'
import { BundleErrors } from '../bundles/api.js'
import { CURATED_ERRORS } from '../marketplace/api.js'
import { ExtensionErrors } from './errors.js'
import { InstallErrors } from './install/errors.js'

/** Errors of a request that names an extension, and the workspace of its link. */
export const NAMED_ERRORS = [
  ExtensionErrors.extension_not_found,
  ExtensionErrors.extension_ambiguous,
  ExtensionErrors.extension_dev_invalid,
  ...REFERENCE_ERRORS,
] as const

/** Errors of reading a folder completely. */
export const TREE_ERRORS = [ExtensionErrors.extension_too_large, ExtensionErrors.extension_changing] as const

/** Errors of a manifest that cannot be read. */
const MANIFEST_ERRORS = [
  ExtensionErrors.extension_manifest_missing,
  ExtensionErrors.extension_manifest_invalid,
] as const

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

/** Errors of reading a new version from its source. */
export const SOURCE_ERRORS = [
  ...MANIFEST_ERRORS,
  ...CURATED_ERRORS,
  ExtensionErrors.extension_version_unsupported,
  ExtensionErrors.extension_tier_refused,
  ExtensionErrors.extension_secret_foreign,
  ExtensionErrors.extension_path_escape,
  BundleErrors.bundle_invalid,
  InstallErrors.extension_content_refused,
  InstallErrors.extension_archive_digest_mismatch,
  InstallErrors.extension_unverified_policy_blocked,
  InstallErrors.extension_checksum_unverified,
  InstallErrors.extension_git_unavailable,
  InstallErrors.extension_source_invalid,
  InstallErrors.extension_source_unreachable,
  InstallErrors.extension_catalog_mismatch,
] as const

/** Errors of an update of an installed extension. */
export const UPDATE_ERRORS = [
  ...SOURCE_ERRORS,
  ExtensionErrors.extension_consent_required,
  InstallErrors.extension_not_installed,
  InstallErrors.extension_not_updatable,
  InstallErrors.extension_changed_name,
  InstallErrors.extension_installed,
  InstallErrors.extension_update_failed,
] as const
