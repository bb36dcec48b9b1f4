import type { Scope } from '../contract/basics.js'
import { messageOf } from '../contract/errors.js'
import type { Change } from '../contract/kernel-hooks.js'
import { type KernelHooks, kernelTapper } from '../hooks/kernel-hooks.js'
import type { Transport } from './transport.js'

/** Milliseconds that running handlers of plugins that leave have, and open requests of a door that closes. */
const DRAIN_MS = 5000
const DOOR_MS = 2000

const DOORS = [
  ['http', 'tcp'],
  ['socket', 'socket'],
] as const

/** Taps the stages of the kernel's life at which routes, requests, streams and doors change. */
export function attachTransport(transport: Transport, hooks: KernelHooks, scope: Scope): void {
  const tapper = kernelTapper(scope)
  /** What lets in the requests that wait for plugins which left in a change. */
  const held = new WeakMap<Change, (() => Promise<void>)[]>()
  hooks.check.tap(tapper, plugin => transport.check(plugin.name, plugin.surface.routes))
  hooks.leaving.tap(tapper, async ({ owners, change }) => {
    if (change) {
      held.set(change, [...(held.get(change) ?? []), transport.hold(owners)])
      await Promise.all(owners.map(owner => transport.drain(owner, DRAIN_MS)))
    }
    transport.carrier?.end('replaced', ({ owner }) => owners.includes(owner))
  })
  hooks.published.tap(tapper, async change => {
    const waiting = held.get(change) ?? []
    held.delete(change)
    try {
      await Promise.all([transport.publish(), ...waiting.map(letIn => letIn())])
    } catch (error) {
      if (!transport.ended) await blame(transport, change, error)
    }
  })
  for (const [phase, door] of DOORS) {
    hooks.quiesce.for(phase).tap(tapper, () => [(_, ms) => transport.close(door, Math.min(ms, DOOR_MS))])
  }
}

/** No generation boots with the routes of all: those whose routes are to blame fail, the kernel itself where nobody's are. */
async function blame(transport: Transport, change: Change, error: unknown): Promise<void> {
  const routes = transport.routes()
  let blamed = false
  for (const owner of new Set(routes.map(({ owner }) => owner))) {
    const own = routes.filter(bound => bound.owner === owner)
    const refused = await transport.check(
      owner,
      own.map(({ route }) => route),
    )
    if (refused) change.fail(owner, refused.message)
    blamed ||= refused !== undefined
  }
  if (!blamed) change.fail('kernel', messageOf(error))
}
