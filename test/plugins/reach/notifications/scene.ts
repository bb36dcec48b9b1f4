import * as v from 'valibot'
import { describe } from '../../../../kernel/kit/annotations/index.js'
import {
  definePlugin,
  type EventType,
  event,
  ok,
  type Plugin,
  type PluginKernel,
  routeOf,
  type Tx,
} from '../../../../kernel/plugin.js'
import { notifications } from '../../../../plugins/index.js'
import { Events } from '../../../../plugins/platform/events/api.js'
import {
  type BridgeAddress,
  type BridgeInfo,
  Bridges,
  type BridgesApi,
  type ChatConversation,
  type DeliveryStanding,
  type FoundTarget,
  type PostedMessage,
  points,
} from '../../../../plugins/reach/bridges/api.js'
import { TaskEvents } from '../../../../plugins/work/tasks/api.js'
import { type SceneOptions, type Scene as TaskScene, scene as taskScene } from '../../work/tasks/scene.js'

/** A message as the bridges have it. */
export interface Posted {
  readonly key: string
  readonly bridge: string
  readonly target: BridgeAddress
  readonly text: string
  readonly source: string
  readonly replyTo: string
}

/** What the bridges of a test do. */
export interface FakeBridges {
  readonly plugin: Plugin
  readonly known: Map<string, BridgeInfo>
  /** Throws instead of taking a message of these bridges. */
  readonly failing: Map<string, Error>
  /** Messages that were given up. */
  readonly failed: Set<string>
  /** What directories say of names. */
  readonly names: Map<string, FoundTarget>
  /** Conversations by bridge and session. */
  readonly conversations: Map<string, ChatConversation>
  /** Whether a message is refused by a throw. */
  refuses: () => boolean
  /** Called with the key of a message that is posted again. */
  repeated: (key: string) => void
  posted(): Posted[]
  count(): number
  /** A message ends. */
  end(key: string, standing: DeliveryStanding): Promise<unknown>
}

export const bridge = (id: string, more: Partial<BridgeInfo> = {}): BridgeInfo => ({
  id,
  displayName: id,
  platform: 'test',
  extension: 'test',
  status: 'ready',
  notificationSuppress: false,
  defaultTarget: { group_id: 'general' },
  ...more,
})

/** A plugin that has the token of bridges and keeps messages in a table of its own, in the transaction of their cause. */
export function fakeBridges(...ids: readonly string[]): FakeBridges {
  const known = new Map(ids.map(id => [id, bridge(id)]))
  const failing = new Map<string, Error>()
  const standings = new Map<string, DeliveryStanding>()
  let own: PluginKernel | undefined
  let ended: (key: string, standing: DeliveryStanding) => Promise<unknown> = async () => {}

  class Service implements BridgesApi {
    readonly deliveryEnded
    constructor(private readonly kernel: PluginKernel) {
      own = kernel
      const hooks = kernel.hooks.of(points)
      this.deliveryEnded = hooks.deliveryEnded
      ended = (...told) => hooks.deliveryEnded.call(...told) as Promise<unknown>
    }
    get = (id: string) => known.get(id)
    list = () => [...known.values()]
    post(t: Tx, { bridgeId, key, target, text, source, replyTo = '' }: PostedMessage) {
      const error = failing.get(bridgeId)
      if (error) throw error
      if (made.refuses()) throw new Error('refused')
      const found = known.get(bridgeId)
      if (!found) return 'missing' as const
      if (found.notificationSuppress) return 'suppressed' as const
      const within = this.kernel.db.within(t)
      if (within.row('SELECT 1 FROM bridges_message WHERE key = ?', [key])) {
        made.repeated(key)
        return 'known' as const
      }
      within.run('INSERT INTO bridges_message (key, bridge, target, text, source, replyTo) VALUES (?, ?, ?, ?, ?, ?)', [
        ...[key, bridgeId, JSON.stringify(target), text, source, replyTo],
      ])
      return 'queued' as const
    }
    standing = (key: string) => standings.get(key)
    failedDeliveries = () => made.failed
    parseRoute(route: string): BridgeAddress | undefined {
      const [, kind, id] = /^(group|peer):(.+)$/s.exec(route) ?? []
      return kind === 'group' ? { group_id: id as string } : kind === 'peer' ? { peer_id: id as string } : undefined
    }
    findTarget = async (_: string, name: string) =>
      made.names.get(name) ?? { candidates: ['group:C1 (ops)'], isAmbiguous: false }
    conversationOf = (id: string, session: string) => made.conversations.get(`${id} ${session}`)
    routeOf = ({ group_id: group, peer_id: peer }: BridgeAddress) => (group ? `group:${group}` : `peer:${peer}`)
    totals = () => ({}) as never
  }
  const made: FakeBridges = {
    known,
    failing,
    failed: new Set(['dlv_1', 'dlv_2']),
    names: new Map(),
    conversations: new Map(),
    refuses: () => false,
    repeated: () => {},
    count: () => Number(own?.db.row('SELECT count(*) FROM bridges_message')?.[0]),
    posted: () =>
      (own?.db.all('SELECT key, bridge, target, text, source, replyTo FROM bridges_message ORDER BY rowid') ?? []).map(
        row => {
          const { target, ...rest } = row as unknown as Posted & { target: string }
          return { ...rest, target: JSON.parse(target) }
        },
      ),
    end: async (key, standing) => {
      standings.set(key, standing)
      await ended(key, standing)
    },
    plugin: definePlugin({
      name: 'bridges',
      version: '0.0.1',
      provides: Bridges,
      service: async () => Service,
    }).surface({
      tables: [
        {
          id: '001',
          sql: 'CREATE TABLE bridges_message (key TEXT PRIMARY KEY, bridge TEXT, target TEXT, text TEXT, source TEXT, replyTo TEXT) STRICT',
        },
      ],
    }),
  }
  return made
}

const needs = { events: Events }
class Emitting {
  constructor(private readonly kernel: PluginKernel<typeof needs>) {}
  last(): number {
    const { payload } = this.kernel.needs.events.latest({ name: 'task.run_failed' }) ?? {}
    return (payload as { n?: number } | undefined)?.n ?? 0
  }
  emit(names: readonly { name: string; payload: Record<string, unknown>; scope?: string; subject?: string }[]) {
    return this.kernel.db.tx(t => {
      for (const { name, payload, ...about } of names) {
        const type = (TaskEvents as unknown as Record<string, EventType<never>>)[name] ?? event(name, v.looseObject({}))
        this.kernel.needs.events.emit(t, type as EventType<never>, payload as never, about)
      }
    })
  }
}

/** A plugin that puts events into the log. */
export const emitter: Plugin = definePlugin({
  name: 'emitter',
  version: '0.0.1',
  requires: needs,
  service: async () => Emitting,
}).surface({
  routes: [
    routeOf<Emitting>(describe('Test'))({
      method: 'GET',
      path: '/api/test/last',
      summary: 'Number of the newest failure',
      replies: { 200: v.object({ n: v.number() }) },
      handle: self => ok({ n: self.last() }),
    }),
    routeOf<Emitting>(describe('Test'))({
      method: 'POST',
      path: '/api/test/emit',
      summary: 'Emit events',
      body: v.object({ events: v.array(v.any()) }),
      bodyLimit: 16 * 1024 * 1024,
      replies: { 200: v.object({}) },
      handle: async (self, { body }) => {
        await self.emit(body.events)
        return ok({})
      },
    }),
  ],
})

export interface Scene extends Omit<TaskScene, 'killed'> {
  readonly bridges: FakeBridges
  emit(name: string, payload?: object, more?: { scope?: string; subject?: string }): Promise<void>
  emitAll(events: readonly object[]): Promise<void>
  /** Makes an enabled preset; default: of all task events, to the bridge `team`. */
  preset(name: string, more?: object): Promise<void>
  /** Lets the dispatcher do what it has to do. */
  settle(): Promise<void>
  /** Texts of the messages to a bridge. */
  texts(bridge?: string): string[]
  killed(...keep: Parameters<TaskScene['killed']>): Promise<Scene>
}

/** A daemon with tasks and notifications, and bridges that keep what is posted. */
export async function scene(options: SceneOptions & { readonly bridges?: FakeBridges } = {}): Promise<Scene> {
  const bridges = options.bridges ?? fakeBridges('team', 'other')
  const plugins = [notifications, bridges.plugin, emitter, ...(options.plugins ?? [])]
  return around(await taskScene({ ...options, plugins }), bridges)
}

function around(tasks: TaskScene, bridges: FakeBridges): Scene {
  const emitAll = async (events: readonly object[]) => {
    await tasks.post('/api/test/emit', { events })
  }
  return {
    ...tasks,
    bridges,
    emitAll,
    emit: (name, payload = {}, more = {}) => emitAll([{ name, payload, ...more }]),
    settle: async () => {
      for (let n = 0; n < 5; n++) await tasks.pass(0)
    },
    preset: async (name, more = {}) => {
      const body = { name, events: ['task.run_*'], targets: [{ bridge_id: 'team' }], enabled: true, ...more }
      const { status, body: reply } = await tasks.post('/api/notifications/presets', body)
      if (status !== 201) throw new Error(JSON.stringify(reply))
    },
    texts: (wanted = 'team') => bridges.posted().flatMap(({ bridge, text }) => (bridge === wanted ? [text] : [])),
    killed: async (...keep) => around(await tasks.killed(...keep), bridges),
  }
}
