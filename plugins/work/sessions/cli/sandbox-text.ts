import type { Session } from '../../../../schemas/sessions.js'

/** Where the commands of a session run, in a few words. */
export function sandboxText({ sandbox }: Pick<Session, 'sandbox'>): string {
  return sandbox?.profile ? `sandbox ${sandbox.profile}` : 'no sandbox'
}

/** Why a session that should run in a sandbox does not. */
export function sandboxWarning({ sandbox }: Pick<Session, 'sandbox'>): string | undefined {
  return sandbox?.state === 'unavailable' ? `warning: not in a sandbox: ${sandbox.last_sync_error}` : undefined
}
