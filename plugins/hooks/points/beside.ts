import { covers } from '../../../kernel/kit/text.js'
import { definePlugin, type Plugin, surfaceOf } from '../../../kernel/plugin.js'
import { Heartbeats } from '../../heartbeats/api.js'
import { Confinement } from '../../sandboxes/api.js'
import { Spawning } from '../../self-service/api.js'
import { SessionErrors, type SessionInfo, Sessions } from '../../sessions/api.js'
import { Sidecars } from '../../sidecars/api.js'
import { Hooks } from '../api.js'
import type { Self, WithSessions } from './self.js'
import { workPoints } from './work.js'

const version = '0.1.0'
const { tap } = surfaceOf<Self>()
const { tap: tapWith } = surfaceOf<WithSessions>()

const sandboxes = definePlugin({
  name: 'hooks-sandboxes',
  version,
  requires: { hooks: Hooks, confinement: Confinement },
}).surface({
  taps: [
    tap(
      Confinement,
      ({ points }) => points.prepare,
      ({ needs }) =>
        async (wish, session) => {
          const deny = (await needs.hooks.ask('sandbox.prepare', session, sandboxOf(session, wish)))?.deny
          return deny === undefined ? undefined : { ...wish, deny }
        },
    ),
    tap(
      Confinement,
      ({ points }) => points.ready,
      ({ needs }) =>
        (chosen, session) =>
          needs.hooks.tell('sandbox.ready', session, sandboxOf(session, chosen)),
    ),
    tap(
      Confinement,
      ({ points }) => points.stop,
      ({ needs }) =>
        session => {
          const { confinement } = session
          const more = confinement?.kind === 'sandbox' ? sandboxOf(session, confinement) : {}
          needs.hooks.tell('sandbox.stop', session, more)
        },
    ),
  ],
})

/** A session has one sandbox, which goes by the ID of the session. */
const sandboxOf = (
  { id }: SessionInfo,
  { backend, profile }: { readonly backend: string; readonly profile: string },
) => ({
  ...{ sandbox_id: id, sandbox_backend: backend, sandbox_profile: profile },
})

const sidecars = definePlugin({
  name: 'hooks-sidecars',
  version,
  requires: { hooks: Hooks, sidecars: Sidecars, sessions: Sessions },
}).surface({
  taps: [
    tap(
      Sidecars,
      service => service.policyResolved,
      ({ needs }) =>
        (policy, agent, workspace) =>
          needs.hooks.announce('agent.heartbeat.policy.resolved', workspace?.id, { agent_name: agent, policy }),
    ),
    tap(
      Sidecars,
      service => service.soulChanged,
      ({ needs }) =>
        (soul, agent, workspace) =>
          needs.hooks.announce('agent.soul.mutation.after', workspace?.id, { agent_name: agent, soul }),
    ),
    tapWith(
      Sidecars,
      service => service.soulResolved,
      ({ needs }) =>
        (soul, { id, agentName }) => {
          const session = needs.sessions.get(id)
          if (session) needs.hooks.tell('agent.soul.snapshot.resolved', session, { soul })
          else needs.hooks.announce('agent.soul.snapshot.resolved', undefined, { agent_name: agentName, soul })
        },
    ),
  ],
})

const heartbeats = definePlugin({
  name: 'hooks-heartbeats',
  version,
  requires: { hooks: Hooks, heartbeats: Heartbeats, sessions: Sessions },
}).surface({
  taps: [
    tapWith(
      Heartbeats,
      service => service.wakeBefore,
      ({ needs }) =>
        async ({ sessionId, source }) => {
          const session = needs.sessions.get(sessionId)
          const done =
            session && (await needs.hooks.ask('agent.heartbeat.wake.before', session, { wake_source: source }))
          return done?.deny === undefined ? undefined : SessionErrors.hook_denied(done.deny)
        },
    ),
    tapWith(
      Heartbeats,
      service => service.wakeAfter,
      ({ needs }) =>
        ({ sessionId, source }, decision) => {
          const session = needs.sessions.get(sessionId)
          if (session) needs.hooks.tell('agent.heartbeat.wake.after', session, { wake_source: source, ...decision })
        },
    ),
  ],
})

const TOLD_OF_CHILDREN = {
  parentStopped: 'spawn.parent_stopped',
  ttlExpired: 'spawn.ttl_expired',
  reaped: 'spawn.reaped',
} as const

const spawning = definePlugin({
  name: 'hooks-spawning',
  version,
  requires: { hooks: Hooks, spawning: Spawning, sessions: Sessions },
}).surface({
  taps: [
    tap(
      Spawning,
      ({ points }) => points.preCreate,
      ({ needs }) =>
        async (wish, parent) => {
          const { agentName, role, permissions } = wish
          const autonomy = { parent_session_id: parent.id, root_session_id: parent.id, spawn_role: role }
          const more = { child_agent_name: agentName, permissions, autonomy }
          const done = await needs.hooks.ask('spawn.pre_create', parent, more)
          if (!done) return undefined
          if (done.deny !== undefined) return { ...wish, deny: done.deny }
          return { ...wish, permissions: narrowed(permissions, done.payload.permissions as Lists) }
        },
    ),
    tapWith(
      Spawning,
      ({ points }) => points.created,
      ({ needs }) =>
        child => {
          const session = needs.sessions.get(child)
          if (session) needs.hooks.tell('spawn.created', session, { autonomy: descentOf(session) })
        },
    ),
    ...(Object.keys(TOLD_OF_CHILDREN) as (keyof typeof TOLD_OF_CHILDREN)[]).map(point =>
      tapWith(
        Spawning,
        ({ points }) => points[point],
        ({ needs }) =>
          child => {
            const session = needs.sessions.get(child)
            if (session) needs.hooks.tell(TOLD_OF_CHILDREN[point], session, { autonomy: descentOf(session) })
          },
      ),
    ),
  ],
})

/** The matcher fields of a spawned session. */
const descentOf = ({ id, lineage }: SessionInfo) => ({
  child_session_id: id,
  ...(lineage && {
    ...{ parent_session_id: lineage.parent_session_id, root_session_id: lineage.root_session_id },
    spawn_role: lineage.spawn_role,
  }),
})

type Lists = Readonly<Record<string, unknown>>

/** Narrows each permission list to what a hook left; a hook cannot add permissions. */
function narrowed<P extends object>(asked: P, wanted: Lists): P {
  const rest = Object.entries(asked as Readonly<Record<string, readonly string[]>>).map(([name, atoms]) => {
    const left = wanted[name]
    return [name, Array.isArray(left) ? left.filter(atom => atoms.some(one => covers(one, String(atom)))) : []]
  })
  return Object.fromEntries(rest) as P
}

/** Taps on optional plugins, one plugin each, so that hooks work without them. */
export const hookPoints: readonly Plugin[] = [sandboxes, sidecars, heartbeats, spawning, ...workPoints]
