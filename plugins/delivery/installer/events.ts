import * as v from 'valibot'
import { event } from '../../../kernel/plugin.js'

const placed = v.object({
  name: v.string(),
  version: v.string(),
  digest: v.string(),
  installed_from: v.string(),
  previous_version: v.optional(v.string()),
})
const failed = v.object({ name: v.optional(v.string()), source: v.string(), code: v.string(), error: v.string() })

export const ExtensionInstalled = event('extension.install.completed', placed)
export const ExtensionInstallFailed = event('extension.install.failed', failed)
export const ExtensionUpdated = event('extension.update.completed', placed)
export const ExtensionUpdateFailed = event('extension.update.failed', failed)
export const ExtensionRemoved = event('extension.removed', v.object({ name: v.string(), purged: v.boolean() }))
/** The installed files were compared with the digest stored at their installation. */
export const ExtensionDigestVerified = event(
  'extension.digest.verify',
  v.object({ name: v.string(), expected: v.string(), actual: v.string(), matches: v.boolean() }),
)

export const installEvents = [
  ExtensionInstalled,
  ExtensionInstallFailed,
  ExtensionUpdated,
  ExtensionUpdateFailed,
  ExtensionRemoved,
  ExtensionDigestVerified,
]
