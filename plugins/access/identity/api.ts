/** `svc/plugins/identity`: who an agent is when its process calls the daemon. */

import * as v from 'valibot'
import { command } from '../../../kernel/kit/commands/command-line.js'
import { type Actor, defineErrors, event, operator } from '../../../kernel/plugin.js'
import type { StoredEvent } from '../../platform/events/api.js'

/** Origin of actors that are the agent of a session. Routes that serve them name it in `origins`. */
export const AGENT_SESSION = 'agent_session'

/** The session whose agent makes a request, or for which it is made; undefined: a person, or a program of theirs. */
export const agentSessionOf = ({ origin, id, onBehalfOf }: Actor): string | undefined =>
  origin === AGENT_SESSION ? id : onBehalfOf?.kind === AGENT_SESSION ? onBehalfOf.id : undefined

/** An actor under the name that the audit and tasks show to people. */
export interface NamedActor {
  readonly kind: 'human' | 'agent_session' | 'extension' | 'daemon'
  /** `operator` for the owner of the daemon; else the id of the key, session, extension or plugin. */
  readonly ref: string
}

/** The name that people read for an actor. No code of the daemon acts as its owner, so the owner is always a person. */
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

/** The name that people read for the owner of the daemon; records store the id of its authority. */
export const OPERATOR = 'operator'

/** The same for the actor of a logged event. */
export function agentSessionOfEvent({ actor }: Pick<StoredEvent, 'actor'>): string | undefined {
  const { origin, id, on_behalf_of: other } = actor
  if (origin === AGENT_SESSION) return id
  return other?.startsWith(`${AGENT_SESSION}/`) ? other.slice(AGENT_SESSION.length + 1) : undefined
}

/**
 * Whoever has the operator token makes a request for the agent of a session. Its cause is the id of that request, which is the
 * cause of all that comes of it.
 */
export const ActingFor = event('identity.acting_for', v.object({ session_id: v.string(), agent: v.string() }))

const next = 'call over the socket of the session (SVC_SOCKET), or over TCP with its token (SVC_SESSION_TOKEN)'

export const IdentityErrors = defineErrors({
  identity_mismatch: { status: 401, message: 'the headers name another session or agent than this caller is', next },
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
