import { RequestError } from '@agentclientprotocol/sdk'
import { messageOf, type Redact } from '../../../../kernel/plugin.js'
import { redactText } from '../../../platform/redaction/api.js'
import type { FailureKind } from '../api.js'
import { AgentFailure } from './failure.js'
import { reasonOf } from './last-words.js'

const REASON_CHARACTERS = 700
/** JSON-RPC code of ACP: authentication required. */
const LOGIN_WANTED = -32000

/** Text of an error response: its message, the reason in its data, and its code. */
export function describe(error: unknown, redact: Redact): string {
  if (!(error instanceof RequestError)) return messageOf(error)
  const reason = reasonOf(error.data)
  const told = reason === undefined || error.message.includes(reason) ? error.message : `${error.message}: ${reason}`
  const text = `${redact.text(redactText(told), REASON_CHARACTERS)} (${error.code})`
  return error.code === LOGIN_WANTED ? `the agent wants a login: ${text}` : text
}

/** JSON-RPC code: invalid parameters. */
const INVALID_PARAMS = -32602

/** Whether MCP servers may be the reason of a refusal: it names them, or the parameters that contain them. */
export function refusesServers(failure: unknown): boolean {
  if (!(failure instanceof AgentFailure) || failure.wantsLogin) return false
  const { cause } = failure
  return cause instanceof RequestError && (cause.code === INVALID_PARAMS || /mcp/i.test(failure.message))
}

/**
 * The failure of a request that the agent refused.
 * @param login instructions for the login, shown when the agent needs one; undefined where they are unknown
 */
export function refused(
  kind: FailureKind,
  what: string | undefined,
  error: unknown,
  redact: Redact,
  login: string | undefined,
): AgentFailure {
  const wantsLogin = error instanceof RequestError && error.code === LOGIN_WANTED
  const told = `${what === undefined ? '' : `${what}: `}${describe(error, redact)}`
  const failure = new AgentFailure(kind, wantsLogin && login !== undefined ? `${told}; ${login}` : told, error)
  failure.wantsLogin = wantsLogin
  return failure
}
