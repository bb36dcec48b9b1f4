// A kernel with the overview or without it, a process of its own: what it does is asked for by name.
import path from 'node:path'
import * as v from 'valibot'
import { createKernel, type Kernel } from '../../kernel/index.js'
import { definePlugin, event, type Plugin, type PluginKernel } from '../../kernel/plugin.js'
import { openStore } from '../../kernel/store/index.js'
import {
  acp,
  agents,
  base,
  daemon,
  disk,
  identity,
  observe,
  ownership,
  providers,
  resources,
  sessions,
  tasks,
  trust,
  vault,
  workspaces,
  worktrees,
} from '../../plugins/index.js'
import { Events } from '../../plugins/platform/events/api.js'
import { answer } from './child.js'
import { median } from './measure.js'

const HOUR = 3_600_000
const DAY = 24 * HOUR
const AT_ONCE = 64
const WORKSPACES = 20
const Happened = event('task.run_completed', v.object({ text: v.string() }))
const needs = { events: Events }
let inside: PluginKernel<typeof needs>
let kernel: Kernel

const plugin = definePlugin({
  name: 'bench',
  version: '1.0.0',
  requires: needs,
  service: async () =>
    class {
      constructor(own: PluginKernel<typeof needs>) {
        inside = own
      }
    },
}).surface({}) as Plugin

const others = [
  daemon,
  disk,
  ownership,
  resources,
  workspaces,
  trust,
  vault,
  providers,
  agents,
  identity,
  acp,
  worktrees,
  sessions,
  tasks,
]
const counted = () => Number(inside.db.row('SELECT counted FROM observe_progress')?.[0])

const handlers = {
  async open(home: string, withOverview: boolean): Promise<void> {
    const names = new Set<string>()
    const plugins = [...base, ...others, ...(withOverview ? [observe] : []), plugin].filter(
      ({ name }) => !names.has(name) && names.add(name),
    )
    kernel = await createKernel({ home, plugins, env: { HOME: home, SVC_HOME: home } })
  },

  async close(): Promise<void> {
    await kernel.close()
  },

  /** Rows of 30 days as so many events, runs and sessions leave them, in 20 workspaces. */
  async fill(home: string, events: number, sessionCount: number): Promise<void> {
    const now = Date.now()
    const store = await openStore({ path: path.join(home, 'svc.db'), now: Date.now })
    const hours = 30 * 24
    await store.db.tx(t => {
      for (let n = 0; n < hours * WORKSPACES; n++) {
        const hour = now - (now % HOUR) - Math.floor(n / WORKSPACES) * HOUR
        const values = [hour, `ws_${n % WORKSPACES}`, Math.round(events / hours / WORKSPACES), hour + 1]
        t.run('INSERT OR REPLACE INTO observe_hour (hour, workspace_id, events, last_at) VALUES (?, ?, ?, ?)', values)
      }
      for (let n = 0; n < 30 * WORKSPACES; n++) {
        const day = new Date(now - Math.floor(n / WORKSPACES) * DAY).toISOString().slice(0, 10)
        t.run(
          `INSERT OR REPLACE INTO observe_day (day, workspace_id, runs_completed, runs_failed, runs_canceled, tasks_closed,
             hook_runs, hook_failures) VALUES (?, ?, 50, 5, 1, 40, 300, 2)`,
          [day, `ws_${n % WORKSPACES}`],
        )
      }
      for (let n = 0; n < sessionCount; n++) {
        const at = now - Math.floor((n / sessionCount) * 30 * DAY)
        const day = new Date(at).toISOString().slice(0, 10)
        t.run(
          `INSERT INTO sessions_session (id, name, type, agent_name, workspace_id, workspace_path, provider, model, state,
             epoch, journal_bytes, last_activity_at, created_at, updated_at)
           VALUES (?, '', 'user', ?, ?, '/', 'p', '', 'stopped', 1, 0, ?, ?, ?)`,
          [`ses_${n}`, `agent-${n % 12}`, `ws_${n % WORKSPACES}`, at, at - (n % 7) * HOUR, at],
        )
        t.run(
          `INSERT INTO sessions_usage_day (day, session_id, workspace_id, agent_name, provider, model, turns, tokens, cost, currency)
           VALUES (?, ?, ?, ?, 'p', '', 3, 1000, 0.1, 'USD')`,
          [day, `ses_${n}`, `ws_${n % WORKSPACES}`, `agent-${n % 12}`],
        )
      }
    })
    await store.close()
  },

  /** Milliseconds of so many overviews, one after the other: median, 99th percentile, and the processor time of one. */
  async overviews(count: number, window: string) {
    const times: number[] = []
    const before = process.cpuUsage()
    for (let n = 0; n < count; n++) {
      const began = performance.now()
      const { status, body } = await kernel.inject({
        method: 'GET',
        url: `/api/observe/overview?usage_window=${window}`,
      })
      times.push(performance.now() - began)
      if (status !== 200) throw new Error(`${status} ${body}`)
    }
    times.sort((a, b) => a - b)
    const { user, system } = process.cpuUsage(before)
    const used = (user + system) / 1000 / count
    return { p50: median(times), p99: times[Math.floor(times.length * 0.99)] ?? 0, used }
  },

  /** Milliseconds of processor time of one durable event, among so many, and until all are counted. */
  async emit(count: number, isCounted: boolean): Promise<number> {
    const before = process.cpuUsage()
    for (let done = 0; done < count; done += AT_ONCE)
      await Promise.all(
        Array.from({ length: AT_ONCE }, () =>
          inside.db.tx(t => inside.needs.events.emit(t, Happened, { text: 'x'.repeat(100) }, { subject: 'bench' })),
        ),
      )
    while (isCounted && counted() < inside.needs.events.last() - AT_ONCE * 8)
      await new Promise(resolve => setTimeout(resolve, 50))
    const { user, system } = process.cpuUsage(before)
    return (user + system) / 1000 / count
  },

  /** Events that are counted, and those that the log has. */
  async checked(): Promise<readonly [counted: number, emitted: number]> {
    while (counted() < inside.needs.events.last()) await new Promise(resolve => setTimeout(resolve, 50))
    return [
      Number(inside.db.row('SELECT sum(runs_completed) FROM observe_day')?.[0]),
      inside.needs.events
        .counts({ name: Happened.name, from: '2000-01-01', to: '2999-12-31' })
        .reduce((sum, { n }) => sum + n, 0),
    ]
  },
}

export type OverviewHandlers = typeof handlers
answer(handlers)
