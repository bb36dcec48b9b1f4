import { messageOf } from '../../../../kernel/plugin.js'
import { PathRefused } from '../requests/paths.js'

/** JSON-RPC code for a denied permission. ACP defines none, and its own codes mean something else. */
const PERMISSION_DENIED = -32003
const NOT_POSSIBLE = -32004
const RESOURCE_NOT_FOUND = -32002

/**
 * An error response to a request of an agent. The SDK's own class is not used because the SDK loads with the first process only.
 */
export class AcpRefusal extends Error {
  override readonly name = 'AcpRefusal'

  /** @param code of JSON-RPC; @param data readable by programs */
  constructor(
    readonly code: number,
    message: string,
    readonly data: { readonly code: string },
  ) {
    super(message)
  }
}

/** The response to an agent request that its permissions do not cover. */
export function permissionDenied(message: string): AcpRefusal {
  return new AcpRefusal(PERMISSION_DENIED, message, { code: 'permission_denied' })
}

/** The response to an agent request for which the session lacks a right. */
export function toolNotGranted(right: string): AcpRefusal {
  const message = `permission denied: this session was spawned without the tool ${right}`
  return new AcpRefusal(PERMISSION_DENIED, message, { code: 'tool_not_granted' })
}

/** The response to a permitted request that cannot be carried out. */
export function notPossible(code: string, message: string): AcpRefusal {
  return new AcpRefusal(NOT_POSSIBLE, message, { code })
}

/** Turns any error of a client method into a protocol error. */
export function refusalOf(error: unknown): AcpRefusal {
  if (error instanceof AcpRefusal) return error
  if (error instanceof PathRefused) return permissionDenied(`permission denied: ${error.message}`)
  const { code } = (error ?? {}) as NodeJS.ErrnoException
  if (code === 'ENOENT')
    return new AcpRefusal(RESOURCE_NOT_FOUND, 'Resource not found: no such file', { code: 'not_found' })
  return notPossible(typeof code === 'string' ? code.toLowerCase() : 'failed', messageOf(error))
}
