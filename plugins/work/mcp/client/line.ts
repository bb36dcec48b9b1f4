/** The revision of the protocol by which the second line is spoken: without handshake and sessions. */
export const LATER_LINE = '2026-07-28'

/** Codes with which a server refuses the handshake of the first line: the version is not supported, or there is no such method. */
const REFUSALS: readonly unknown[] = [-32022, -32601]

/** Whether a server refused the handshake of the first line because it speaks the second one alone. */
export function isOfLaterLine(error: unknown): boolean {
  const { code, data } = Object(error) as { readonly code?: unknown; readonly data?: { readonly text?: unknown } }
  return REFUSALS.includes(code) || REFUSALS.includes(codeIn(data?.text))
}

/** Whether a server did not understand the first request of the second line. */
export const isOfNoLine = (error: unknown): boolean => Object(error).code === 'ERA_NEGOTIATION_FAILED'

/** Over HTTP the refusal is the body of a reply with an error status. */
function codeIn(text: unknown): unknown {
  if (typeof text !== 'string') return undefined
  try {
    return Object(JSON.parse(text)).error?.code
  } catch {
    return undefined
  }
}
