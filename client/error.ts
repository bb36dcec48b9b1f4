/** An error reply of the daemon. Codes are stable; the text is for people. */
export class ApiError extends Error {
  override readonly name = 'ApiError'

  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    /** What is wrong with each part of the request, by its name; `next` is the step that helps. */
    readonly details: Readonly<Record<string, string>>,
    /** Seconds after which to try again. */
    readonly retryAfter: number | undefined,
    /** The body as it came. */
    readonly body: unknown,
  ) {
    super(message)
  }
}

/** No reply came, or none that can be understood: nobody listens, the connection broke, a stream did not come back. */
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

/** The error of a reply; of one that is not the daemon's too. */
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
