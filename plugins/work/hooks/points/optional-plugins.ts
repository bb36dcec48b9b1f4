import { covers } from '../../../../kernel/kit/text.js'
import { maybe, surfaceOf, type Tap } from '../../../../kernel/plugin.js'
import { Confinement } from '../../../access/sandboxes/api.js'
import { Heartbeats } from '../../../agents/heartbeats/api.js'
import { Spawning } from '../../../agents/self-service/api.js'
import { Sidecars } from '../../../agents/sidecars/api.js'
import { SessionErrors, type SessionInfo } from '../../sessions/api.js'
import type { HooksService } from '../service.js'

const { tap } = surfaceOf<HooksService>()

const sandboxes: readonly Tap<HooksService>[] = [
  tap(
    maybe(Confinement),
    ({ points }) => points.prepare,
    service => async (wish, session) => {
      const deny = (await service.ask('sandbox.prepare', session, sandboxOf(session, wish)))?.deny
      return deny === undefined ? undefined : { ...wish, deny }
    },
  ),
  tap(
    maybe(Confinement),
    ({ points }) => points.ready,
    service => (chosen, session) => service.tell('sandbox.ready', session, sandboxOf(session, chosen)),
  ),
  tap(
    maybe(Confinement),
    ({ points }) => points.stop,
    service => session => {
      const { confinement } = session
      service.tell('sandbox.stop', session, confinement?.kind === 'sandbox' ? sandboxOf(session, confinement) : {})
    },
  ),
]

/** A session has one sandbox, identified by the ID of the session. */
const sandboxOf = (
  { id }: SessionInfo,
  { backend, profile }: { readonly backend: string; readonly profile: string },
) => ({
  ...{ sandbox_id: id, sandbox_backend: backend, sandbox_profile: profile },
})

const sidecars: readonly Tap<HooksService>[] = [
  tap(
    maybe(Sidecars),
    service => service.policyResolved,
    service => (policy, agent, workspace) =>
      service.announce('agent.heartbeat.policy.resolved', workspace?.id, { agent_name: agent, policy }),
  ),
  tap(
    maybe(Sidecars),
    service => service.soulChanged,
    service => (soul, agent, workspace) =>
      service.announce('agent.soul.mutation.after', workspace?.id, { agent_name: agent, soul }),
  ),
  tap(
    maybe(Sidecars),
    service => service.soulResolved,
    service =>
      (soul, { id, agentName }) => {
        const session = service.session(id)
        if (session) service.tell('agent.soul.snapshot.resolved', session, { soul })
        else service.announce('agent.soul.snapshot.resolved', undefined, { agent_name: agentName, soul })
      },
  ),
]

const heartbeats: readonly Tap<HooksService>[] = [
  tap(
    maybe(Heartbeats),
    service => service.wakeBefore,
    service =>
      async ({ sessionId, source }) => {
        const session = service.session(sessionId)
        const done = session && (await service.ask('agent.heartbeat.wake.before', session, { wake_source: source }))
        return done?.deny === undefined ? undefined : SessionErrors.hook_denied(done.deny)
      },
  ),
  tap(
    maybe(Heartbeats),
    service => service.wakeAfter,
    service =>
      ({ sessionId, source }, decision) => {
        const session = service.session(sessionId)
        if (session) service.tell('agent.heartbeat.wake.after', session, { wake_source: source, ...decision })
      },
  ),
]

/** Events of a spawned session, by the hook of its plugin. */
const OF_CHILDREN = {
  created: 'spawn.created',
  parentStopped: 'spawn.parent_stopped',
  ttlExpired: 'spawn.ttl_expired',
  reaped: 'spawn.reaped',
} as const

const spawning: readonly Tap<HooksService>[] = [
  tap(
    maybe(Spawning),
    ({ points }) => points.preCreate,
    service => async (wish, parent) => {
      const { agentName, role, permissions } = wish
      const autonomy = { parent_session_id: parent.id, root_session_id: parent.id, spawn_role: role }
      const more = { child_agent_name: agentName, permissions, autonomy }
      const done = await service.ask('spawn.pre_create', parent, more)
      if (!done) return undefined
      if (done.deny !== undefined) return { ...wish, deny: done.deny }
      return { ...wish, permissions: narrowed(permissions, done.payload.permissions as Lists) }
    },
  ),
  ...(Object.keys(OF_CHILDREN) as (keyof typeof OF_CHILDREN)[]).map(point =>
    tap(
      maybe(Spawning),
      ({ points }) => points[point],
      service => (child: string) => {
        const session = service.session(child)
        if (session) service.tell(OF_CHILDREN[point], session, { autonomy: descentOf(session) })
      },
    ),
  ),
]

/** The matcher fields of a spawned session. */
const descentOf = ({ id, lineage }: SessionInfo) => ({
  child_session_id: id,
  ...(lineage && {
    ...{ parent_session_id: lineage.parent_session_id, root_session_id: lineage.root_session_id },
    spawn_role: lineage.spawn_role,
  }),
})

type Lists = Readonly<Record<string, unknown>>

/** Applies the permission lists of a hook, which can only remove permissions. */
function narrowed<P extends object>(policy: P, wanted: Lists): P {
  const rest = Object.entries(policy as Readonly<Record<string, readonly string[]>>).map(([name, atoms]) => {
    const left = wanted[name]
    return [name, Array.isArray(left) ? left.filter(atom => atoms.some(one => covers(one, String(atom)))) : []]
  })
  return Object.fromEntries(rest) as P
}

/** Taps on optional plugins around sessions. */
export const optionalPluginTaps: readonly Tap<HooksService>[] = [...sandboxes, ...sidecars, ...heartbeats, ...spawning]
