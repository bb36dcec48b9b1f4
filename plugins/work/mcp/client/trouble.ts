/**
 * Why an HTTP exchange failed, if the connection is the reason:
 * - `session`: the server refused the session, so it did not execute the request
 * - `refused`: nothing listens at the address, so nothing was sent
 * - `broken`: the connection broke; it is unknown whether the request was executed
 */
export type Trouble = 'session' | 'refused' | 'broken'

/** Some servers refuse an unknown session with 400, where the protocol requires 404. */
const OF_SESSION = /\bsession\b|not initialized/i
/** Timeouts of `fetch`: an immediate retry is not worthwhile. */
const LATE = /TIMEDOUT|TIMEOUT/

/** @param status of the reply, if the error is one of a reply; @param hasSession whether the request named a session */
export function troubleOf(error: unknown, status: number | undefined, hasSession: boolean): Trouble | undefined {
  if (status !== undefined) {
    const isRefused = status === 404 || (status === 400 && OF_SESSION.test(String((error as Error).message)))
    return hasSession && isRefused ? 'session' : undefined
  }
  const code = codeOf(error)
  if (code === 'ECONNREFUSED') return 'refused'
  return code !== undefined && !LATE.test(code) ? 'broken' : undefined
}

/** Error code of a failed `fetch`, which is in one of its causes. */
function codeOf(error: unknown): string | undefined {
  if (!(error instanceof TypeError)) return undefined
  for (let cause = error.cause, depth = 0; cause instanceof Error && depth < 4; cause = cause.cause, depth++) {
    const { code } = cause as NodeJS.ErrnoException
    if (typeof code === 'string') return code
  }
  return undefined
}
