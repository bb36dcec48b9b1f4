/** Installing, updating and removing extensions. */
import * as v from 'valibot'
import { Integer, queryBoolean } from '../kernel/common.js'

const text = v.optional(v.string())

/** What an extension from a catalog may do besides, where the operator consents to it by name. */
export const ConsentName = v.picklist(['bridge.read', 'bridge.write', 'session.write'])
const allow = v.optional(v.pipe(v.array(ConsentName), v.maxLength(8)))

/** POST /api/extensions. `tree_digest` is what a preview showed: anything else is refused. */
export const InstallExtensionBody = v.strictObject({
  allow_unverified: v.optional(v.boolean()),
  asset: text,
  checksum: text,
  path: text,
  slug: text,
  source: text,
  version: text,
  tree_digest: text,
  /** What a preview showed that it brings: the consent to that. */
  consent_digest: text,
  /** Consents to what an extension from a catalog is granted only by name. */
  allow,
})
export type InstallExtensionBody = v.InferOutput<typeof InstallExtensionBody>

/** PUT /api/extensions/{name}. */
export const UpdateExtensionBody = v.strictObject({
  allow_unverified: v.optional(v.boolean()),
  check_only: v.optional(v.boolean()),
  path: v.optional(v.pipe(v.string(), v.description('archive of another version, of one that came from this machine'))),
  version: text,
  checksum: text,
  tree_digest: text,
  consent_digest: text,
  /** Beside what the installed version was allowed. */
  allow,
})
export type UpdateExtensionBody = v.InferOutput<typeof UpdateExtensionBody>

/** POST /api/extensions/preview: of a source, or with `name` of the source of an installed extension. */
export const PreviewInstallBody = v.strictObject({ ...InstallExtensionBody.entries, name: text })
export type PreviewInstallBody = v.InferOutput<typeof PreviewInstallBody>

/** One thing that an extension brings: what of it runs, where it leads, and what it is given. */
export const Brought = v.object({
  kind: v.string(),
  name: v.string(),
  /** Command line of a program, as it is written. */
  runs: text,
  /** Addresses that the daemon sends requests to. */
  reaches: v.optional(v.array(v.string())),
  /** References to secrets and variables that it is given. */
  given: v.optional(v.array(v.string())),
  /** The sandbox profile that it names. */
  sandbox: text,
  /** When it runs, or what it may do. */
  about: text,
})
export type Brought = v.InferOutput<typeof Brought>

/** What installing or updating would do. */
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
  /** Consents that it asks for and that only the operator gives, by name; those of them that are given. */
  consents_asked: v.array(ConsentName),
  consents_given: v.array(ConsentName),
  requires_env: v.array(v.string()),
  /** Everything that runs, is reached or is given something; `new_brings` is what the installed version does not bring. */
  brings: v.array(Brought),
  new_brings: v.array(Brought),
  /** SHA-256 of `brings`, which an install repeats as the consent to it; empty where it brings nothing. */
  consent_digest: v.string(),
  /** Without the consent it is not installed. */
  consent_required: v.boolean(),
  /** Its programs run in a sandbox. */
  sandboxed: v.boolean(),
  command: text,
  /** `refused` with the code and the text of the refusal. */
  decision: v.string(),
  refusal: v.optional(v.object({ code: v.string(), error: v.string() })),
})
export type InstallPreview = v.InferOutput<typeof InstallPreview>

/** POST /api/extensions/preview. */
export const InstallPreviewReply = v.object({ preview: InstallPreview })
export type InstallPreviewReply = v.InferOutput<typeof InstallPreviewReply>

/** POST /api/extensions/update: all that were installed, one after the other, to the first that fails. */
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

/** DELETE /api/extensions/{name}. With `purge` its records, tables and bindings go as well. */
export const RemoveExtensionQuery = v.strictObject({
  purge: v.optional(queryBoolean()),
  workspace: v.optional(v.string()),
})
export type RemoveExtensionQuery = v.InferOutput<typeof RemoveExtensionQuery>

/** POST /api/extensions/{name}/verify. */
export const VerifyExtensionReply = v.object({ expected: v.string(), actual: v.string(), matches: v.boolean() })
export type VerifyExtensionReply = v.InferOutput<typeof VerifyExtensionReply>
