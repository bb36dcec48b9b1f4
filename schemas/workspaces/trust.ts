/** Trust of workspaces: whether their files may run code. */
import * as v from 'valibot'
import { maybeTimestamp } from '../kernel/common.js'

/** `changed`: the files have changed since they were trusted. `empty`: no file could run code. */
export const TrustState = v.picklist(['empty', 'untrusted', 'trusted', 'changed'])
export type TrustState = v.InferOutput<typeof TrustState>

/** Whether a workspace is trusted, and the files concerned. */
export const WorkspaceTrust = v.object({
  workspace_id: v.string(),
  state: TrustState,
  /** Digest of the current files. */
  digest: v.string(),
  /** Relative to the workspace root; absolute for files in additional folders. */
  files: v.array(v.string()),
  trusted_at: maybeTimestamp,
  trusted_by: v.optional(v.string()),
})
export type WorkspaceTrust = v.InferOutput<typeof WorkspaceTrust>

/** GET and PUT of the trust of a workspace. */
export const WorkspaceTrustReply = v.object({ trust: WorkspaceTrust })
export type WorkspaceTrustReply = v.InferOutput<typeof WorkspaceTrustReply>

/** PUT of the trust of a workspace; `digest` limits it to the reviewed content. */
export const PutTrustBody = v.strictObject({ digest: v.pipe(v.string(), v.maxLength(128)) })
export type PutTrustBody = v.InferOutput<typeof PutTrustBody>
