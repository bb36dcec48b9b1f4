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
    self => async (wish, session) => {
      const deny = (await self.ask('sandbox.prepare', session, sandboxOf(session, wish)))?.deny
      return deny === undefined ? undefined : { ...wish, deny }
    },
  ),
  tap(
    maybe(Confinement),
    ({ points }) => points.ready,
    self => (chosen, session) => self.tell('sandbox.ready', session, sandboxOf(session, chosen)),
  ),
  tap(
    maybe(Confinement),
    ({ points }) => points.stop,
    self => session => {
      const { confinement } = session
      self.tell('sandbox.stop', session, confinement?.kind === 'sandbox' ? sandboxOf(session, confinement) : {})
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
    self => (policy, agent, workspace) =>
      self.announce('agent.heartbeat.policy.resolved', workspace?.id, { agent_name: agent, policy }),
  ),
  tap(
    maybe(Sidecars),
    service => service.soulChanged,
    self => (soul, agent, workspace) =>
      self.announce('agent.soul.mutation.after', workspace?.id, { agent_name: agent, soul }),
  ),
  tap(
    maybe(Sidecars),
    service => service.soulResolved,
    self =>
      (soul, { id, agentName }) => {
        const session = self.session(id)
        if (session) self.tell('agent.soul.snapshot.resolved', session, { soul })
        else self.announce('agent.soul.snapshot.resolved', undefined, { agent_name: agentName, soul })
      },
  ),
]

const heartbeats: readonly Tap<HooksService>[] = [
  tap(
    maybe(Heartbeats),
    service => service.wakeBefore,
    self =>
      async ({ sessionId, source }) => {
        const session = self.session(sessionId)
        const done = session && (await self.ask('agent.heartbeat.wake.before', session, { wake_source: source }))
        return done?.deny === undefined ? undefined : SessionErrors.hook_denied(done.deny)
      },
  ),
  tap(
    maybe(Heartbeats),
    service => service.wakeAfter,
    self =>
      ({ sessionId, source }, decision) => {
        const session = self.session(sessionId)
        if (session) self.tell('agent.heartbeat.wake.after', session, { wake_source: source, ...decision })
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
    self => async (wish, parent) => {
      const { agentName, role, permissions } = wish
      const autonomy = { parent_session_id: parent.id, root_session_id: parent.id, spawn_role: role }
      const more = { child_agent_name: agentName, permissions, autonomy }
      const done = await self.ask('spawn.pre_create', parent, more)
      if (!done) return undefined
      if (done.deny !== undefined) return { ...wish, deny: done.deny }
      return { ...wish, permissions: narrowed(permissions, done.payload.permissions as Lists) }
    },
  ),
  ...(Object.keys(OF_CHILDREN) as (keyof typeof OF_CHILDREN)[]).map(point =>
    tap(
      maybe(Spawning),
      ({ points }) => points[point],
      self => (child: string) => {
        const session = self.session(child)
        if (session) self.tell(OF_CHILDREN[point], session, { autonomy: descentOf(session) })
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
function narrowed<P extends object>(asked: P, wanted: Lists): P {
  const rest = Object.entries(asked as Readonly<Record<string, readonly string[]>>).map(([name, atoms]) => {
    const left = wanted[name]
    return [name, Array.isArray(left) ? left.filter(atom => atoms.some(one => covers(one, String(atom)))) : []]
  })
  return Object.fromEntries(rest) as P
}

/** Taps on optional plugins around sessions. */
export const besideTaps: readonly Tap<HooksService>[] = [...sandboxes, ...sidecars, ...heartbeats, ...spawning]
