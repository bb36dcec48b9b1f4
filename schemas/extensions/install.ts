/** Installing, updating and removing extensions. */
import * as v from 'valibot'
import { Integer, queryBoolean } from '../kernel/common.js'

const text = v.optional(v.string())

/** Additional permissions that a catalog extension gets only with the operator's explicit consent. */
export const ConsentName = v.picklist(['bridge.read', 'bridge.write', 'session.write'])
const allow = v.optional(v.pipe(v.array(ConsentName), v.maxLength(8)))

/** POST /api/extensions. `tree_digest` comes from a preview: any other content is refused. */
export const InstallExtensionBody = v.strictObject({
  allow_unverified: v.optional(v.boolean()),
  asset: text,
  checksum: text,
  path: text,
  slug: text,
  source: text,
  version: text,
  tree_digest: text,
  /** Consent to the contents that a preview showed. */
  consent_digest: text,
  /** Explicit consents for an extension from a catalog. */
  allow,
})
export type InstallExtensionBody = v.InferOutput<typeof InstallExtensionBody>

/** PUT /api/extensions/{name}. */
export const UpdateExtensionBody = v.strictObject({
  allow_unverified: v.optional(v.boolean()),
  check_only: v.optional(v.boolean()),
  path: v.optional(
    v.pipe(v.string(), v.description('archive with another version, for an extension installed from this machine')),
  ),
  version: text,
  checksum: text,
  tree_digest: text,
  consent_digest: text,
  /** In addition to the consents of the installed version. */
  allow,
})
export type UpdateExtensionBody = v.InferOutput<typeof UpdateExtensionBody>

/** POST /api/extensions/preview of a source, or with `name` of the source of an installed extension. */
export const PreviewInstallBody = v.strictObject({ ...InstallExtensionBody.entries, name: text })
export type PreviewInstallBody = v.InferOutput<typeof PreviewInstallBody>

/** One part of an extension, with its command, addresses and secrets. */
export const Brought = v.object({
  kind: v.string(),
  name: v.string(),
  /** Command line of a program, as written. */
  runs: text,
  /** URLs that the daemon sends requests to. */
  reaches: v.optional(v.array(v.string())),
  /** References to secrets and variables that it receives. */
  given: v.optional(v.array(v.string())),
  /** Its sandbox profile. */
  sandbox: text,
  /** When it runs, or its permissions. */
  about: text,
})
export type Brought = v.InferOutput<typeof Brought>

/** The effects of an installation or update. */
export const InstallPreview = v.object({
  name: v.string(),
  description: v.string(),
  type: v.string(),
  action: v.picklist(['install', 'update', 'none', 'taken']),
  version: v.string(),
  previous_version: text,
  registry_tier: v.string(),
  source_url: v.string(),
  commit: text,
  archive_digest_sha256: text,
  tree_digest: v.string(),
  files: Integer,
  bytes: Integer,
  permissions: v.array(v.string()),
  permissions_added: v.array(v.string()),
  permissions_removed: v.array(v.string()),
  permissions_dropped: v.array(v.string()),
  /** Explicit consents: those requested, and those already given. */
  consents_asked: v.array(ConsentName),
  consents_given: v.array(ConsentName),
  requires_env: v.array(v.string()),
  /** All parts that run, contact or receive something; `new_brings` lacks those of the installed version. */
  brings: v.array(Brought),
  new_brings: v.array(Brought),
  /** SHA-256 of `brings`, which the installation repeats as consent; empty if there are no such parts. */
  consent_digest: v.string(),
  /** The installation requires the consent. */
  consent_required: v.boolean(),
  /** Its programs run in a sandbox. */
  sandboxed: v.boolean(),
  command: text,
  /** `refused`: see the code and message in `refusal`. */
  decision: v.string(),
  refusal: v.optional(v.object({ code: v.string(), error: v.string() })),
})
export type InstallPreview = v.InferOutput<typeof InstallPreview>

/** POST /api/extensions/preview. */
export const InstallPreviewReply = v.object({ preview: InstallPreview })
export type InstallPreviewReply = v.InferOutput<typeof InstallPreviewReply>

/** POST /api/extensions/update: updates all installed extensions in turn; stops at the first failure. */
export const UpdateAllBody = v.strictObject({ allow_unverified: v.optional(v.boolean()) })
export type UpdateAllBody = v.InferOutput<typeof UpdateAllBody>

/** POST /api/extensions/update. */
export const UpdateAllReply = v.object({
  updates: v.array(
    v.object({
      name: v.string(),
      status: v.string(),
      current_version: text,
      latest_version: text,
      code: text,
      error: text,
    }),
  ),
})
export type UpdateAllReply = v.InferOutput<typeof UpdateAllReply>

/** DELETE /api/extensions/{name}. `purge` also removes its records, tables and bindings. */
export const RemoveExtensionQuery = v.strictObject({
  purge: v.optional(queryBoolean()),
  workspace: v.optional(v.string()),
})
export type RemoveExtensionQuery = v.InferOutput<typeof RemoveExtensionQuery>

/** POST /api/extensions/{name}/verify. */
export const VerifyExtensionReply = v.object({ expected: v.string(), actual: v.string(), matches: v.boolean() })
export type VerifyExtensionReply = v.InferOutput<typeof VerifyExtensionReply>
