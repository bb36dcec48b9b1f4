import type { Session } from '../../../schemas/sessions.js'

/** The sandbox of a session, in a few words. */
export function sandboxText({ sandbox }: Pick<Session, 'sandbox'>): string {
  return sandbox?.profile ? `sandbox ${sandbox.profile}` : 'no sandbox'
}

/** Warning about a missing sandbox, with the reason. */
export function sandboxWarning({ sandbox }: Pick<Session, 'sandbox'>): string | undefined {
  return sandbox?.state === 'unavailable' ? `warning: not in a sandbox: ${sandbox.last_sync_error}` : undefined
}
