import { type Actor, operator } from '../../../kernel/plugin.js'
import type { TaskActor, TaskOrigin } from '../../../schemas/tasks.js'
import { AGENT_SESSION, IdentityErrors, namedActor, OPERATOR } from '../../access/identity/api.js'

/** The actor of an operation. */
export interface Who {
  readonly actor: Actor
  /** The actor with its stored ID, as in rows of earlier versions. Replies use `actorToWire`. */
  readonly by: TaskActor
  readonly origin: TaskOrigin
}

const ORIGINS: readonly string[] = ['cli', 'web', 'uds', 'http', 'extension', 'daemon']

/** The actor of a request, or of a plugin. */
export function whoOf(actor: Actor): Who {
  const session = sessionOf(actor)
  if (session !== undefined) return whoOfSession(actor, session)
  const by = { kind: kindOf(actor), ref: actor.id } as const
  const kind = by.kind === 'automation' ? 'automation' : ORIGINS.includes(actor.origin ?? '') ? actor.origin : 'http'
  return { actor, by, origin: { kind: kind as TaskOrigin['kind'], ref: actor.id } }
}

/** The agent of a session. */
export function whoOfSession(actor: Actor, session: string): Who {
  return { actor, by: { kind: 'agent_session', ref: session }, origin: { kind: 'agent_session', ref: session } }
}

/** The session of the agent, or the session on whose behalf an operator acts. */
export function sessionOf({ id, origin, onBehalfOf }: Actor): string | undefined {
  if (origin === AGENT_SESSION) return id
  return onBehalfOf?.kind === AGENT_SESSION ? onBehalfOf.id : undefined
}

/** The refusal of an agent's access to another workspace. */
export const foreignWorkspace = (text = 'an agent can only access tasks in its own workspace') =>
  IdentityErrors.identity_unauthorized(text)

/** A stored actor on the wire. */
export const actorToWire = (kind: TaskActor['kind'], ref: string | null): TaskActor =>
  ref === operator.id ? { kind: 'human', ref: OPERATOR } : { kind, ref: ref ?? '' }

/** The stored ID of an actor or origin on the wire. */
export const refToWire = (ref: string): string => (ref === operator.id ? OPERATOR : ref)

// The owner is stored as `daemon`, as in rows of earlier versions, because inbox marks are found by it.
function kindOf(actor: Actor): TaskActor['kind'] {
  if (actor.id === 'automation') return 'automation'
  return actor.id === operator.id ? 'daemon' : namedActor(actor).kind
}
