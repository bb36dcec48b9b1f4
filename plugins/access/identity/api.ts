/** `svc/plugins/identity`: identity of agents whose processes call the daemon. */

import * as v from 'valibot'
import { command } from '../../../kernel/kit/commands/command-line.js'
import { type Actor, defineErrors, event, operator } from '../../../kernel/plugin.js'
import type { StoredEvent } from '../../platform/events/api.js'

/** Origin of an actor that is the agent of a session. Routes that accept it list it in `origins`. */
export const AGENT_SESSION = 'agent_session'

/** The session of the agent that sends a request, or on whose behalf it is sent; undefined for a person or their program. */
export const agentSessionOf = ({ origin, id, onBehalfOf }: Actor): string | undefined =>
  origin === AGENT_SESSION ? id : onBehalfOf?.kind === AGENT_SESSION ? onBehalfOf.id : undefined

/** An actor with the name shown to people in the audit and in tasks. */
export interface NamedActor {
  readonly kind: 'human' | 'agent_session' | 'extension' | 'daemon'
  /** `operator` for the owner of the daemon; otherwise the id of the key, session, extension or plugin. */
  readonly ref: string
}

/** The displayed name of an actor. No code of the daemon acts as its owner, so the owner is always a person. */
export function namedActor({
  kind,
  id,
  origin,
}: {
  kind: string
  id: string
  origin?: string | null | undefined
}): NamedActor {
  if (origin === AGENT_SESSION) return { kind: AGENT_SESSION, ref: id }
  if (id === operator.id) return { kind: 'human', ref: OPERATOR }
  if (kind === 'operator') return { kind: 'human', ref: id }
  return { kind: kind === 'extension' || origin === 'extension' ? 'extension' : 'daemon', ref: id }
}

/** The displayed name of the daemon's owner; records store the id of its authority. */
export const OPERATOR = 'operator'

/** Like {@link agentSessionOf}, for the actor of a logged event. */
export function agentSessionOfEvent({ actor }: Pick<StoredEvent, 'actor'>): string | undefined {
  const { origin, id, on_behalf_of: other } = actor
  if (origin === AGENT_SESSION) return id
  return other?.startsWith(`${AGENT_SESSION}/`) ? other.slice(AGENT_SESSION.length + 1) : undefined
}

/**
 * A caller with the operator token sends a request on behalf of a session's agent. The id of that request is the cause of this
 * event and of all resulting changes. A route that is not audited and runs no code, such as a heartbeat, has one event a minute for
 * each caller and session; the events of the changes name the session.
 */
export const ActingFor = event('identity.acting_for', v.object({ session_id: v.string(), agent: v.string() }))

const next = 'call over the socket of the session (SVC_SOCKET), or over TCP with its token (SVC_SESSION_TOKEN)'

export const IdentityErrors = defineErrors({
  identity_mismatch: { status: 401, message: 'the headers name a session or agent other than the caller', next },
  identity_stale: {
    status: 401,
    message: 'the session of this identity is stopped or unknown',
    next: command('session list'),
  },
  identity_unauthorized: {
    status: 403,
    message: 'an agent may not do this',
    next: 'ask the operator: an agent reads its own session and workspace, and changes nothing here',
  },
  identity_unavailable: { status: 503, message: 'whether this identity is valid is not known now; try again' },
})
