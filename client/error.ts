/** An error reply of the daemon. Codes are stable; the text is for people. */
export class ApiError extends Error {
  override readonly name = 'ApiError'

  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    /** The problem of each part of the request, by its name; `next` is the step that helps. */
    readonly details: Readonly<Record<string, string>>,
    /** Seconds after which to try again. */
    readonly retryAfter: number | undefined,
    /** The parsed body; text if it is not JSON. */
    readonly body: unknown,
  ) {
    super(message)
  }
}

/** There is no usable reply: the daemon does not answer, the connection broke, or an interrupted stream could not be resumed. */
export class ConnectionError extends Error {
  override readonly name = 'ConnectionError'

  constructor(
    readonly code: 'unreachable' | 'stream_cut' | 'protocol',
    message: string,
    cause?: unknown,
  ) {
    super(message, cause === undefined ? undefined : { cause })
  }
}

/** The error of a reply, even if the reply does not have the daemon's format. */
export function apiError(status: number, text: string, retryAfter: string | undefined): ApiError {
  const body = parsed(text)
  const { error, code, details } = (typeof body === 'object' && body !== null ? body : {}) as Record<string, unknown>
  return new ApiError(
    status,
    typeof code === 'string' ? code : 'unknown',
    typeof error === 'string' ? error : `the daemon answered ${status}`,
    typeof details === 'object' && details !== null ? (details as Record<string, string>) : {},
    retryAfter === undefined ? undefined : Number(retryAfter),
    body,
  )
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
