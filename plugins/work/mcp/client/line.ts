/** The second protocol version, without handshake and sessions. */
export const LATER_LINE = '2026-07-28'

/** Error codes for a refused handshake of the first version: unsupported version, or unknown method. */
const REFUSALS: readonly unknown[] = [-32022, -32601]

/** Whether a server refused the handshake because it supports only the second version. */
export function isOfLaterLine(error: unknown): boolean {
  const { code, data } = Object(error) as { readonly code?: unknown; readonly data?: { readonly text?: unknown } }
  return REFUSALS.includes(code) || REFUSALS.includes(codeIn(data?.text))
}

/** Whether a server did not understand the first request of the second version. */
export const isOfNoLine = (error: unknown): boolean => Object(error).code === 'ERA_NEGOTIATION_FAILED'

/** Over HTTP, the refusal is the body of an error reply. */
function codeIn(text: unknown): unknown {
  if (typeof text !== 'string') return undefined
  try {
    return Object(JSON.parse(text)).error?.code
  } catch {
    return undefined
  }
}
