// A daemon without a listener with a channel of many peers: node network-process.ts HOME.
import { mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { createKernel, type Kernel } from '../../kernel/index.js'
import { definePlugin, type PluginKernel } from '../../kernel/plugin.js'
import { inTree } from '../../plugins/index.js'
import { Network } from '../../plugins/reach/network/api.js'
import type { NetworkService } from '../../plugins/reach/network/service.js'
import { Sessions } from '../../plugins/work/sessions/api.js'
import { answer } from './child.js'

const [home = ''] = process.argv.slice(2)
/** Messages that are under way at the same time. */
const SENDERS = 16

type Needs = { network: typeof Network; sessions: typeof Sessions }
const inside = { kernel: undefined as PluginKernel<Needs> | undefined }
const observer = definePlugin({
  name: 'observer',
  version: '1.0.0',
  requires: { network: Network, sessions: Sessions },
  service: async () =>
    class {
      constructor(kernel: PluginKernel<Needs>) {
        inside.kernel = kernel
      }
    },
}).surface({})

let kernel: Kernel
let base = ''
let peers: readonly { readonly peer_id: string; readonly session_id: string }[] = []
let sent = 0

async function request(method: 'POST' | 'GET', url: string, body?: unknown) {
  const reply = await kernel.inject({ method, url, ...(body === undefined ? {} : { body }) })
  if (reply.status >= 300) throw new Error(`${method} ${url}: ${reply.status} ${reply.body}`)
  return JSON.parse(reply.body)
}

/** Milliseconds of so many pieces of work, some at a time. */
async function timed(count: number, work: (n: number) => Promise<unknown>): Promise<number> {
  const began = performance.now()
  let next = 0
  const lane = async () => {
    while (next < count) await work(next++)
  }
  await Promise.all(Array.from({ length: SENDERS }, lane))
  return performance.now() - began
}

const handlers = {
  /** Makes a channel with so many peers, none of which has a process. */
  async boot(count: number): Promise<void> {
    const root = `${home}-project`
    const names = Array.from({ length: count }, (_, n) => `agent-${n}`)
    for (const name of names) {
      const folder = path.join(home, 'agents', name)
      mkdirSync(folder, { recursive: true })
      writeFileSync(path.join(folder, 'AGENT.md'), `---\nname: ${name}\ncommand: 'false'\n---\nYou help.\n`)
    }
    mkdirSync(root, { recursive: true })
    writeFileSync(path.join(home, 'config.json'), JSON.stringify({ limits: { max_concurrent_agents: count + 10 } }))
    kernel = await createKernel({
      home,
      plugins: [...inTree, observer],
      env: { PATH: process.env.PATH, SVC_HOME: home },
    })
    const { workspace } = await request('POST', '/api/workspaces/resolve', { path: root })
    base = `/api/workspaces/${workspace.id}/network`
    await request('POST', `${base}/channels`, { channel: 'team' })
    const { needs, actor } = inside.kernel as PluginKernel<Needs>
    // More than one request makes.
    const service = needs.network as unknown as NetworkService
    for (const agentName of names) {
      const session = await needs.sessions.create({ workspaceId: workspace.id, agentName, actor })
      await service.kernel.db.tx(t => service.peers.join(t, 'team', session))
    }
    peers = (await request('GET', `${base}/channels/team`)).channel.peers
  },

  /** Milliseconds of so many messages to all peers, each with its decision for every one, until they are on the disk. */
  messages(count: number): Promise<number> {
    return timed(count, n => {
      const { session_id } = peers[n % peers.length] as (typeof peers)[number]
      const body = { text: `message ${sent++} of a peer that says what it has done since the last one` }
      return request('POST', `${base}/send`, {
        channel: 'team',
        kind: 'say',
        session_id,
        thread_id: 'thread_bench',
        body,
      })
    })
  },

  /** The same with so many readers of the conversation, until each of them has every message. */
  async followed(count: number, readers: number): Promise<number> {
    const { feeds, kernel: own } = (inside.kernel as PluginKernel<Needs>).needs.network as unknown as NetworkService
    const followed = { workspaceId: base.split('/')[3] ?? '', channel: 'team' }
    const { seq = 0 } = own.db.get<{ seq: number }>('SELECT max(seq) AS seq FROM network_message') ?? {}
    // Readers at the same place have the same page.
    const frames = new WeakMap<object, number>()
    const framesOf = (page: Uint8Array) => {
      const known = frames.get(page) ?? Buffer.from(page).toString('latin1').split('event: message').length - 1
      frames.set(page, known)
      return known
    }
    const read = async () => {
      const stop = new AbortController()
      let seen = 0
      for await (const page of feeds.frames(followed, seq, stop.signal)) {
        seen += framesOf(page as unknown as Uint8Array)
        if (seen >= count) stop.abort()
      }
    }
    const all = Array.from({ length: readers }, read)
    const began = performance.now()
    await handlers.messages(count)
    await Promise.all(all)
    return performance.now() - began
  },

  /** Milliseconds of so many records, each in a transaction of its own. */
  records(count: number): Promise<number> {
    const { db, records, actor } = inside.kernel as PluginKernel<Needs>
    const text = 'a record of the length of a message between two peers of a channel '.repeat(8)
    const spec = { text }
    return timed(count, n =>
      db.tx(t => records.put(t, actor, { kind: 'bench.plain', id: `plain-${n}`, scope: { kind: 'global' }, spec })),
    )
  },
}
export type NetworkProcess = typeof handlers

answer(handlers)
