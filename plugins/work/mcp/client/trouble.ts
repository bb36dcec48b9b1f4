/**
 * Why an exchange over HTTP failed, where the way to the server is the reason:
 * - `session`: the server refused the session, so it did not execute the request
 * - `refused`: nothing listens at the address, so nothing was sent
 * - `broken`: the connection broke; whether the request was executed is not known
 */
export type Trouble = 'session' | 'refused' | 'broken'

/** Some servers refuse a session that they do not know with 400, where the protocol asks for 404. */
const OF_SESSION = /\bsession\b|not initialized/i
/** Errors of `fetch` that come late: the address is not worth asking again at once. */
const LATE = /TIMEDOUT|TIMEOUT/

/** @param status of the reply, where the error is that of a reply; @param hasSession the request named a session */
export function troubleOf(error: unknown, status: number | undefined, hasSession: boolean): Trouble | undefined {
  if (status !== undefined) {
    const isRefused = status === 404 || (status === 400 && OF_SESSION.test(String((error as Error).message)))
    return hasSession && isRefused ? 'session' : undefined
  }
  const code = codeOf(error)
  if (code === 'ECONNREFUSED') return 'refused'
  return code !== undefined && !LATE.test(code) ? 'broken' : undefined
}

/** The code that the system or the HTTP client gives a failed `fetch`, which stands in one of its causes. */
function codeOf(error: unknown): string | undefined {
  if (!(error instanceof TypeError)) return undefined
  for (let cause = error.cause, depth = 0; cause instanceof Error && depth < 4; cause = cause.cause, depth++) {
    const { code } = cause as NodeJS.ErrnoException
    if (typeof code === 'string') return code
  }
  return undefined
}
