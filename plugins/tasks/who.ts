import type { Actor } from '../../kernel/plugin.js'
import type { TaskActor, TaskOrigin } from '../../schemas/tasks.js'
import { AGENT_SESSION } from '../identity/api.js'

/** The actor of an operation, as recorded with tasks and in the event log. */
export interface Who {
  readonly actor: Actor
  readonly by: TaskActor
  readonly origin: TaskOrigin
}

const ORIGINS: readonly string[] = ['cli', 'web', 'uds', 'http', 'extension', 'daemon']

/** The actor of a request, or of a plugin. */
export function whoOf(actor: Actor): Who {
  const session = sessionOf(actor)
  if (session !== undefined) return whoOfSession(actor, session)
  const by = { kind: kindOf(actor), ref: actor.id }
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

function kindOf({ kind, id }: Actor): TaskActor['kind'] {
  if (kind === 'operator') return 'human'
  if (kind === 'extension') return 'extension'
  return id === 'automation' ? 'automation' : 'daemon'
}
