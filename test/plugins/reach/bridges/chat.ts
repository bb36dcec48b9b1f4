import { definePlugin, type Plugin, surfaceOf } from '../../../../kernel/plugin.js'
import { vault } from '../../../../plugins/index.js'
import {
  Bridges,
  type BridgesApi,
  type DeliveryStanding,
  type InboundEvent,
  type IngestResult,
  type PostedMessage,
} from '../../../../plugins/reach/bridges/api.js'
import bridges from '../../../../plugins/reach/bridges/index.js'
import { probe } from '../../../../testing/traces.js'
import { eventually, openWorld, type World, type WorldOptions } from '../../../fixtures/session-world.js'
import type { Reply } from '../../../harness/kernel.js'
import { type FakeOptions, FakePlatform } from './fake-platform.js'

/** A daemon with sessions and a bridge to a platform in memory. */
export interface Chat {
  readonly world: World
  readonly platform: FakePlatform
  readonly bridge: string
  readonly bridges: () => BridgesApi
  /** Somebody writes; resolves to what the adapter is answered. */
  say(text: string, more?: Partial<InboundEvent>): Promise<IngestResult>
  /** Waits until a room reads so; the room of ada without an address. */
  reads(wanted: (texts: readonly string[]) => boolean, address?: Parameters<FakePlatform['room']>[0]): Promise<string[]>
  deliveries(query?: string): Promise<readonly Reply[]>
  /** Events of a session. */
  events(sessionId: string | undefined): Promise<readonly Reply[]>
  /** Waits until an agent has its prompt. */
  untilPrompted(sessionId: string | undefined): Promise<unknown>
  /** Another plugin that posts messages, and what it hears of them. */
  poster(): {
    post(message: PostedMessage): Promise<string>
    standing(key: string): DeliveryStanding | undefined
    readonly ended: readonly (readonly [string, DeliveryStanding])[]
  }
  restart(meanwhile?: () => void): Promise<void>
  close(): Promise<void>
}

export interface ChatOptions extends FakeOptions {
  readonly spec?: Record<string, unknown>
  readonly world?: WorldOptions
  readonly plugins?: readonly Plugin[]
  readonly permissions?: string
}

export async function openChat({
  spec = {},
  world: more = {},
  plugins = [],
  permissions,
  ...options
}: ChatOptions = {}) {
  const platform = new FakePlatform(options)
  const look = probe({ bridges: Bridges })
  const ended: (readonly [string, DeliveryStanding])[] = []
  const { tap } = surfaceOf()
  const listener = definePlugin({ name: 'listener', version: '1.0.0', requires: { bridges: Bridges } }).surface({
    taps: [
      tap(
        Bridges,
        service => service.deliveryEnded,
        () => (key, standing) => void ended.push([key, standing]),
      ),
    ],
  })
  const world = await openWorld({
    ...more,
    plugins: [vault, bridges, platform.plugin, look.plugin, listener, ...plugins],
  })
  await world.agent('ada', permissions === undefined ? {} : { permissions })
  await world.kernel.request('PATCH', `/api/workspaces/${world.workspaceId}`, { default_agent: 'ada' })
  const bridge = 'b1'
  const body = {
    display_name: 'Team chat',
    platform: options.platform ?? 'fakechat',
    extension_name: options.name ?? 'fakechat',
    routing_policy: { include_peer: true },
    enabled: true,
    ...spec,
  }
  const scope = { kind: 'workspace', id: world.workspaceId }
  const put = await world.kernel.request('PUT', `/api/resources/bridge.instance/${bridge}`, {
    ...{ scope, spec: body, expected_version: 0 },
  })
  if (put.status !== 201) throw new Error(`PUT: ${put.status} ${JSON.stringify(put.body)}`)
  const ready = () =>
    eventually(async () => look.kernel().needs.bridges.get(bridge)?.status === 'ready', 'a bridge that is ready')
  await ready()
  const chat: Chat = {
    ...{ world, platform, bridge },
    bridges: () => look.kernel().needs.bridges,
    say: (text, event = {}) => platform.say({ bridge_instance_id: bridge, text, ...event }),
    reads: (wanted, address = { peer_id: 'ada' }) =>
      eventually(
        async () => {
          const texts = platform.room(address)
          return wanted(texts) && texts
        },
        `a room that reads so: ${wanted}; it reads ${JSON.stringify(platform.room(address))}`,
      ),
    deliveries: async (query = '') =>
      (await world.kernel.request('GET', `/api/bridges/${bridge}/deliveries${query}`)).body.deliveries,
    events: id => world.events(`/api/workspaces/${world.workspaceId}/sessions/${id}`),
    untilPrompted: id =>
      world.until(`/api/workspaces/${world.workspaceId}/sessions/${id}`, ({ type }) => type === 'user_message'),
    poster: () => ({
      ended,
      post: message => look.kernel().db.tx(t => look.kernel().needs.bridges.post(t, message)),
      standing: key => look.kernel().needs.bridges.standing(key),
    }),
    restart: async meanwhile => {
      await world.restart(meanwhile ? { meanwhile } : {})
      await ready()
    },
    close: () => world.close(),
  }
  return chat
}
