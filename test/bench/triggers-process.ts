// A daemon with triggers and webhooks whose runs end at once: node triggers-process.ts HOME.
import { mkdtempSync } from 'node:fs'
import { createKernel, type Kernel } from '../../kernel/index.js'
import { definePlugin, type PluginKernel } from '../../kernel/plugin.js'
import { automation, base, daemon, resources, workspaces } from '../../plugins/index.js'
import { Events } from '../../plugins/platform/events/api.js'
import { Observation, RunCreated, RunEnded } from '../../plugins/work/automation/api.js'
import { answer } from './child.js'
import { watchLoop } from './loop-gap.js'
import { pause } from './measure.js'
import { sessions } from './no-sessions.js'
import { serveBare } from './webhook-server.js'

/** Milliseconds of each event: until it is durable, and from then until its run is. */
export interface Fired {
  readonly written: readonly number[]
  readonly claimed: readonly number[]
  readonly gap: number
}

const [home = ''] = process.argv.slice(2)
/** Each has a trigger, and they come in turn. */
const EVENTS = Array.from({ length: 20 }, (_, n) => `ext.bench.tick${n}`)
/** What led to the events, as to most: the id of a request, which is no event. */
const REQUEST = 'req_0123456789abcdef'
/** What deliveries are signed with. */
export const SECRET = 'a secret of the bench'

const table = `CREATE TABLE observer_delivery (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL UNIQUE, body TEXT NOT NULL
  ) STRICT;`
const needs = { events: Events }
const seen = { kernel: undefined as PluginKernel<typeof needs> | undefined, run: (_cause: string) => {}, failed: '' }
const observer = definePlugin({
  name: 'observer',
  version: '1.0.0',
  requires: needs,
  service: async () =>
    class {
      constructor(kernel: PluginKernel<typeof needs>) {
        seen.kernel = kernel
        kernel.needs.events.on(RunCreated, ({ cause }) => seen.run(cause ?? ''))
        kernel.needs.events.on(RunEnded, ({ payload: { status, error } }) => {
          if (status !== 'completed') seen.failed = `a run is ${status}: ${error}`
        })
      }
    },
}).surface({ tables: [{ id: '001-delivery', sql: table }] })

let kernel: Kernel

async function create(body: object): Promise<{ readonly webhook_endpoint: string }> {
  const common = { agent_name: 'none', prompt: 'Look at {{ .Kind }}.', scope: 'global' }
  const reply = await kernel.inject({
    method: 'POST',
    url: '/api/automation/triggers',
    body: { ...common, ...body },
  })
  if (reply.status !== 201) throw new Error(`no trigger: ${reply.body}`)
  return JSON.parse(reply.body).trigger
}

/** A bare server that writes one row for each signed delivery, as durably and into the same store. */
async function inserting(): Promise<number> {
  const { db } = seen.kernel as PluginKernel<typeof needs>
  return serveBare(SECRET, async (signature, body) => {
    const insert = 'INSERT INTO observer_delivery (key, body) VALUES (?, ?)'
    await db.tx(t => t.run(insert, [signature, body.toString()]))
  })
}

const handlers = {
  inserting,

  /** With so many webhooks; their paths, and the port. */
  async boot(webhooks: number): Promise<{ readonly port: number; readonly paths: readonly string[] }> {
    const plugins = [...base, daemon, resources, workspaces, sessions, automation, observer]
    const env = { SVC_HOME: home, HOME: home, BENCH_SECRET: SECRET }
    kernel = await createKernel({ home, plugins, env, listen: ['tcp'] })
    // No folder of the daemon's home can be a workspace.
    const project = mkdtempSync(`${home}-project-`)
    const { status, body } = await kernel.inject({
      method: 'POST',
      url: '/api/workspaces',
      body: { root_dir: project },
    })
    if (status !== 201) throw new Error(`no workspace: ${body}`)
    for (const event of EVENTS) await create({ name: event, event })
    const paths: string[] = []
    for (let n = 0; n < webhooks; n++) {
      const own = { name: `hook ${n}`, event: 'webhook', endpoint_slug: 'push', webhook_secret_ref: 'env:BENCH_SECRET' }
      paths.push((await create(own)).webhook_endpoint)
    }
    const tcp = kernel.host.listeners().find(({ door }) => door === 'tcp')
    return { port: tcp?.door === 'tcp' ? tcp.port : 0, paths }
  },

  /** So many events at that rate, whether those before have fired or not. */
  async fire(count: number, perSecond: number): Promise<Fired> {
    const own = seen.kernel as PluginKernel<typeof needs>
    const [written, claimed, durable] = [[] as number[], [] as number[], new Map<string, number>()]
    /** Told of before its event was: the run has not been waited for at all. */
    const early = new Set<string>()
    const all = new Promise<void>((resolve, reject) => {
      setTimeout(() => reject(new Error(`${claimed.length} of ${count} events fired within a minute`)), 60_000).unref()
      const took = (ms: number) => {
        if (claimed.push(ms) === count) resolve()
      }
      seen.run = cause => {
        const at = durable.get(cause)
        if (at === undefined) early.add(cause)
        else took(performance.now() - at)
      }
      durable.set = (id, at) => {
        Map.prototype.set.call(durable, id, at)
        if (early.delete(id)) took(0)
        return durable
      }
    })
    const longest = watchLoop()
    await pause(10)
    const began = performance.now()
    const emits: Promise<void>[] = []
    const emit = async (n: number) => {
      const event = EVENTS[n % EVENTS.length] as string
      const payload = { event, source: 'extension' as const, data: { n } }
      const startedAt = performance.now()
      const about = { subject: event, cause: REQUEST }
      const { id } = await own.db.tx(t => own.needs.events.emit(t, Observation, payload, about))
      const at = performance.now()
      written.push(at - startedAt)
      durable.set(id, at)
    }
    for (let n = 0; n < count; ) {
      const due = Math.min(count, Math.ceil(((performance.now() - began) / 1000) * perSecond))
      while (n < due) emits.push(emit(n++))
      await pause(1)
    }
    await Promise.all(emits)
    await all
    return { written, claimed, gap: longest() }
  },

  /** Milliseconds of processor time that this process has used; throws when a run did not complete, for such a one is cheap. */
  cpu(): number {
    if (seen.failed !== '') throw new Error(seen.failed)
    const { user, system } = process.cpuUsage()
    return (user + system) / 1000
  },
}
export type TriggersProcess = typeof handlers

answer(handlers)
