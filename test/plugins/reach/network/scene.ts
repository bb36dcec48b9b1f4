import * as assert from 'uvu/assert'
import { definePlugin, type Plugin, type PluginKernel } from '../../../../kernel/plugin.js'
import { Events } from '../../../../plugins/platform/events/api.js'
import { Network } from '../../../../plugins/reach/network/api.js'
import network from '../../../../plugins/reach/network/index.js'
import type { NetworkService } from '../../../../plugins/reach/network/service.js'
import { eventually, openWorld, type WorldOptions } from '../../../fixtures/session-world.js'
import type { Reply } from '../../../harness/kernel.js'

export interface SceneOptions extends Omit<WorldOptions, 'plugins'> {
  readonly agents?: readonly string[]
  readonly plugins?: readonly Plugin[]
  /** Of all agents: options of the scripted agent. */
  readonly flags?: string
  /** Of the channel. */
  readonly channel?: Readonly<Record<string, unknown>>
  readonly permissions?: string
}

type Needs = { events: typeof Events; network: typeof Network }

/** A workspace in which sessions of agents take part in the channel `team`. The text of a message is what its agent does. */
export async function openScene({
  agents = ['ada', 'bob'],
  plugins = [],
  flags,
  channel,
  permissions,
  ...options
}: SceneOptions = {}) {
  const inside: { kernel?: PluginKernel<Needs> } = {}
  const probe = definePlugin({
    name: 'probe',
    version: '1.0.0',
    requires: { events: Events, network: Network },
    service: async () =>
      class {
        constructor(kernel: PluginKernel<Needs>) {
          inside.kernel = kernel
        }
      },
  }).surface({})
  const world = await openWorld({ ...options, plugins: [network, probe, ...plugins] })
  for (const name of agents)
    await world.agent(name, {
      ...(flags !== undefined && { flags }),
      ...(permissions !== undefined && { permissions }),
    })
  const base = `/api/workspaces/${world.workspaceId}/network`
  const request = (method: string, path: string, body?: unknown) => world.kernel.request(method, `${base}${path}`, body)
  const made = await request('POST', '/channels', { channel: 'team', agent_names: agents, ...channel })
  assert.is(made.status, 201, JSON.stringify(made.body))
  const peers = new Map<string, { peer_id: string; session_id: string }>()
  for (const peer of made.body.channel.peers) peers.set(peer.peer_id.split('.')[0], peer)
  const peer = (name: string) => peers.get(name) as { peer_id: string; session_id: string }
  const at = (name: string) => `/api/workspaces/${world.workspaceId}/sessions/${peer(name).session_id}`
  const post = (from: string, more: Readonly<Record<string, unknown>>) =>
    request('POST', '/send', { channel: 'team', kind: 'say', session_id: peer(from).session_id, ...more })
  /** Says something; `to` is the name of an agent. Returns the message. */
  const say = async (from: string, text: string, { to, ...more }: Readonly<Record<string, unknown>> = {}) => {
    const { status, body } = await post(from, {
      body: { text },
      ...(to !== undefined && { to: peer(`${to}`).peer_id }),
      ...more,
    })
    assert.is(status, 200, JSON.stringify(body))
    return body.message as Reply
  }
  const usage = async (query = '') => (await request('GET', `/usage${query}`)).body as Reply
  /** Wakes of a session, the oldest first. */
  const wakesOf = async (name: string): Promise<Reply[]> => {
    const { details } = await usage(`?owner_kind=session&owner_id=${peer(name).session_id}&limit=100`)
    return [...details].reverse()
  }
  /** The prompts that messages led to in a session. */
  const prompts = async (name: string): Promise<string[]> =>
    (await world.events(at(name)))
      .filter(({ type, content }) => type === 'user_message' && content.source === 'network')
      .map(({ content }) => content.text)
  const inbox = async (name: string): Promise<string[]> =>
    (await request('GET', `/inbox?session_id=${peer(name).session_id}`)).body.messages.map((one: Reply) => one.id)
  /** Payloads of the events of a name, the oldest first. */
  const eventsOf = async (name: string): Promise<Reply[]> => {
    const { db, needs } = inside.kernel as PluginKernel<Needs>
    await db.durable()
    return (await needs.events.list({ name })).map(({ payload }) => payload as Reply)
  }
  /** What became of a message for sessions: those that it woke, and why it did not wake others. */
  const disposition = async ({ id }: Reply) => {
    const { woken, skipped } = (await eventsOf('network.message.persisted')).find(one => one.message_id === id) as Reply
    return { woken: woken.length, ...skipped }
  }
  /** Waits until so many wakes of a session are over. */
  const settled = (name: string, count: number) =>
    eventually(async () => {
      const over = (await wakesOf(name)).filter(({ settled_at }) => settled_at)
      return over.length >= count && over
    }, `${count} wakes of ${name} are over`)
  return {
    ...world,
    get kernel() {
      return world.kernel
    },
    /** The network from within. */
    get network() {
      return (inside.kernel as PluginKernel<Needs>).needs.network as NetworkService
    },
    request,
    peer,
    at,
    post,
    say,
    usage,
    wakesOf,
    prompts,
    inbox,
    settled,
    told: eventsOf,
    disposition,
  }
}
