import { mkdir, rm } from 'node:fs/promises'
import path from 'node:path'
import * as v from 'valibot'
import { definePlugin, type EventType, event, type Plugin, type PluginKernel } from '../../../../kernel/plugin.js'
import daemon from '../../../../plugins/desk/daemon/index.js'
import workspaces from '../../../../plugins/desk/workspaces/index.js'
import { Events } from '../../../../plugins/platform/events/api.js'
import observe from '../../../../plugins/reach/observe/index.js'
import { VirtualClock } from '../../../../testing/virtual-clock.js'
import { boot, type Reply, type TestKernel, temporaryFolder } from '../../../harness/kernel.js'

/** An event that a test emits. */
export interface Happening {
  readonly name: string
  readonly scope?: string | undefined
  readonly payload?: Readonly<Record<string, unknown>>
}

export interface World {
  readonly clock: VirtualClock
  readonly home: string
  /** Ids of the workspaces. */
  readonly workspaces: readonly string[]
  emit(happenings: readonly Happening[]): Promise<void>
  overview(query?: string): Promise<Reply>
  /** Rows of a table of the plugin. */
  rows(sql: string): readonly (readonly unknown[])[]
  /** Real time for the loops of the daemon, in which the clock moves on. */
  pass(ms: number): Promise<void>
  /** Ends the daemon and starts the next one in the same home; without the plugin, or with it. */
  restart(more?: { readonly without?: boolean }): Promise<void>
  /** Ends the daemon; `use` then has the home to itself. */
  stopped<T>(use: (home: string) => Promise<T>): Promise<T>
  close(): Promise<void>
}

export interface WorldOptions {
  readonly at?: number
  /** Time zone of the daemon. */
  readonly zone?: string
  readonly without?: boolean
  readonly count?: number
}

const PARTS = 4

/** Resolves when nothing has been written for some turns of the event loop. */
async function settled(): Promise<void> {
  for (let quiet = 0, turns = 0; quiet < 20 && turns < 5000; turns++) {
    await new Promise(resolve => setTimeout(resolve, 2))
    quiet = process.getActiveResourcesInfo().some(name => name.startsWith('FSReq')) ? 0 : quiet + 1
  }
}

/** A daemon with an event log, the overview and nothing that runs, on a clock that stands still. */
export async function world(options: WorldOptions = {}): Promise<World> {
  const clock = new VirtualClock(options.at ?? Date.UTC(2030, 0, 1))
  const home = await temporaryFolder('observe')
  const roots = await temporaryFolder('observe-roots')
  const env = { PATH: process.env.PATH, HOME: home, SVC_HOME: home, ...(options.zone && { TZ: options.zone }) }
  const needs = { events: Events }
  let inside: PluginKernel<typeof needs>
  const types = new Map<string, EventType<Record<string, unknown>>>()
  const typeOf = (name: string) => {
    const known = types.get(name) ?? event(name, v.record(v.string(), v.unknown()))
    types.set(name, known)
    return known
  }
  const emitter = definePlugin({
    name: 'emitter',
    version: '0.0.1',
    requires: needs,
    service: async () =>
      class {
        constructor(kernel: PluginKernel<typeof needs>) {
          inside = kernel
        }
      },
  }).surface({})
  const start = (without = false) => {
    const plugins: Plugin[] = [daemon, workspaces, emitter, ...(without ? [] : [observe])]
    return boot({ home, plugins, clock, env })
  }
  let svc: TestKernel = await start(options.without)
  let isOver = false
  const ids: string[] = []
  for (let n = 0; n < (options.count ?? 2); n++) {
    const root = path.join(roots, `${n}`)
    await mkdir(root)
    ids.push((await svc.request('POST', '/api/workspaces', { root_dir: root, name: `w${n}` })).body.workspace.id)
  }
  return {
    clock,
    home,
    workspaces: ids,
    emit: happenings =>
      inside.db.tx(t => {
        for (const { name, scope, payload = {} } of happenings)
          inside.needs.events.emit(t, typeOf(name), payload, { scope })
      }),
    overview: async (query = '') => {
      const { status, body } = await svc.request('GET', `/api/observe/overview${query}`)
      if (status !== 200) throw new Error(`${status}: ${body.error}`)
      return body.overview
    },
    rows: sql => inside.db.rows(sql),
    pass: async ms => {
      // In parts: what is due is often set by what was due before.
      for (let part = 0; part <= PARTS; part++) {
        if (part > 0) await clock.advance(Math.ceil(ms / PARTS))
        await settled()
      }
    },
    stopped: async use => {
      await svc.close()
      isOver = true
      return use(home)
    },
    restart: async ({ without } = {}) => {
      if (!isOver) await svc.close()
      isOver = false
      svc = await start(without)
    },
    close: async () => {
      await svc.close()
      for (const folder of [home, roots]) await rm(folder, { recursive: true, force: true })
    },
  }
}
