import { RequestError } from '@agentclientprotocol/sdk'
import { messageOf } from '../../kernel/plugin.js'
import { PathRefused } from './paths.js'

/** JSON-RPC code of a refusal by permission; the protocol has none, and its own codes mean something else. */
const PERMISSION_DENIED = -32003
const NOT_POSSIBLE = -32004

/** The answer to a request of an agent that its permissions do not cover. */
export function permissionDenied(message: string): RequestError {
  return new RequestError(PERMISSION_DENIED, message, { code: 'permission_denied' })
}

/** The answer to a request that is permitted and cannot be done. */
export function notPossible(code: string, message: string): RequestError {
  return new RequestError(NOT_POSSIBLE, message, { code })
}

/** Anything thrown by a client method as an error of the protocol. */
export function toRequestError(error: unknown): RequestError {
  if (error instanceof RequestError) return error
  if (error instanceof PathRefused) return permissionDenied(`permission denied: ${error.message}`)
  const { code } = (error ?? {}) as NodeJS.ErrnoException
  if (code === 'ENOENT') return new RequestError(-32002, 'Resource not found: no such file', { code: 'not_found' })
  return notPossible(typeof code === 'string' ? code.toLowerCase() : 'failed', messageOf(error))
}
