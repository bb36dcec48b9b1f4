import * as v from 'valibot'
import type { Setting } from '../../../kernel/plugin.js'
import { InstallErrors } from './errors.js'
import type { Source } from './source/source.js'

/**
 * Trust decision for an extension: verified by its author's digest, local files of the owner, or allowed without
 * verification.
 */
export type Decision = 'verified' | 'local' | 'unverified_allowed'

/** Whether an extension without an expected digest may be installed. */
export const AllowUnverified: Setting<boolean> = {
  path: 'extensions.trust.allow_unverified',
  section: 'hooks-extensions',
  schema: v.boolean(),
  default: true,
  apply: 'live',
}

/** Extensions from a catalog whose programs run without a sandbox. */
export const Unsandboxed: Setting<string[]> = {
  path: 'extensions.trust.unsandboxed',
  section: 'hooks-extensions',
  schema: v.pipe(
    v.array(v.pipe(v.string(), v.minLength(1), v.maxLength(129))),
    v.maxLength(256),
    v.description('Extensions from a catalog or a repository whose programs run without a sandbox, with your rights'),
  ),
  default: [],
  apply: 'live',
}

/**
 * Decides whether a source is trusted. Local files are the owner's own; all others need the author's digest, or the
 * request's consent if the policy allows that.
 * @throws Fault `extension_unverified_policy_blocked`, `extension_checksum_unverified`
 */
export function decide(request: { source: Source; verified: boolean; consent: boolean; policy: boolean }): Decision {
  if (request.verified) return 'verified'
  if (request.source.kind === 'local_path') return 'local'
  if (!request.policy) throw InstallErrors.extension_unverified_policy_blocked()
  if (!request.consent) throw InstallErrors.extension_checksum_unverified()
  return 'unverified_allowed'
}
