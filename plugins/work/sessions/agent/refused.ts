import { RequestError } from '@agentclientprotocol/sdk'
import { messageOf, type Redact } from '../../../../kernel/plugin.js'
import { redactText } from '../../../platform/redaction/api.js'
import type { FailureKind } from '../api.js'
import { AgentFailure } from './failure.js'
import { reasonOf } from './last-words.js'

const REASON_CHARACTERS = 700
/** JSON-RPC code of the protocol: nobody is logged in. */
const LOGIN_WANTED = -32000

/** What an error of the other side says: its text, the reason that its data gives, and its code. */
export function describe(error: unknown, redact: Redact): string {
  if (!(error instanceof RequestError)) return messageOf(error)
  const reason = reasonOf(error.data)
  const told = reason === undefined || error.message.includes(reason) ? error.message : `${error.message}: ${reason}`
  const text = `${redact.text(redactText(told), REASON_CHARACTERS)} (${error.code})`
  return error.code === LOGIN_WANTED ? `the agent wants a login: ${text}` : text
}

/** JSON-RPC code: the parameters are not what the other side takes. */
const INVALID_PARAMS = -32602

/** Whether the refusal of a session may be one of its MCP servers: it names them, or the parameters that they are among. */
export function refusesServers(failure: unknown): boolean {
  if (!(failure instanceof AgentFailure) || failure.wantsLogin) return false
  const { cause } = failure
  return cause instanceof RequestError && (cause.code === INVALID_PARAMS || /mcp/i.test(failure.message))
}

/**
 * The failure of a request that the agent refused.
 * @param login how one logs in, told when it wants that; undefined where nobody knows
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
