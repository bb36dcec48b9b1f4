/** Trust of workspaces: whether what their files say may run code. */
import * as v from 'valibot'
import { maybeTimestamp } from '../kernel/common.js'

/** `changed`: it was trusted, and its files are others now. `empty`: it has no file that could run code. */
export const TrustState = v.picklist(['empty', 'untrusted', 'trusted', 'changed'])
export type TrustState = v.InferOutput<typeof TrustState>

/** Whether a workspace is trusted, and the files that this is about. */
export const WorkspaceTrust = v.object({
  workspace_id: v.string(),
  state: TrustState,
  /** Of the files as they are now. */
  digest: v.string(),
  /** Relative to the root of the workspace, or absolute for those of its additional folders. */
  files: v.array(v.string()),
  trusted_at: maybeTimestamp,
  trusted_by: v.optional(v.string()),
})
export type WorkspaceTrust = v.InferOutput<typeof WorkspaceTrust>

/** GET and PUT of the trust of a workspace. */
export const WorkspaceTrustReply = v.object({ trust: WorkspaceTrust })
export type WorkspaceTrustReply = v.InferOutput<typeof WorkspaceTrustReply>

/** PUT of the trust of a workspace: in the files that were looked at, and no others. */
export const PutTrustBody = v.strictObject({ digest: v.pipe(v.string(), v.maxLength(128)) })
export type PutTrustBody = v.InferOutput<typeof PutTrustBody>
