// Fills a home with stopped sessions and their journals, as a daemon would have left them: sessions-fill.ts HOME ROOT.
import { cpSync } from 'node:fs'
import path from 'node:path'
import { createKernel } from '../../kernel/index.js'
import { definePlugin } from '../../kernel/plugin.js'
import {
  acp,
  agents,
  base,
  daemon,
  providers,
  resources,
  sessions,
  workspaces,
  worktrees,
} from '../../plugins/index.js'
import type { SessionsService } from '../../plugins/work/sessions/service.js'
import { answer } from './child.js'

const [home = '', root = ''] = process.argv.slice(2)
const BATCH = 1000

const seen: { service?: SessionsService } = {}
const opener = definePlugin({
  name: 'opener',
  version: '1.0.0',
  requires: { sessions: { id: 'sessions@1' } },
  service: async () =>
    class {
      constructor(kernel: { needs: Record<string, unknown> }) {
        seen.service = kernel.needs.sessions as SessionsService
      }
    },
}).surface({})

const handlers = {
  /** Sessions with a turn each, one with many events and one with few; ids of these two, and of their workspace. */
  async fill(count: number, events: number, few: number): Promise<{ workspace: string; long: string; short: string }> {
    const plugins = [...base, daemon, resources, workspaces, providers, agents, acp, worktrees, sessions, opener]
    const kernel = await createKernel({ home, plugins, env: { SVC_HOME: home, HOME: home, PATH: process.env.PATH } })
    const added = await kernel.inject({ method: 'POST', url: '/api/workspaces/resolve', body: { path: root } })
    const { id: workspaceId } = JSON.parse(added.body).workspace
    const { context } = seen.service as SessionsService
    const { kernel: own, table, logs } = context
    const make = async () => {
      const { id } = await (seen.service as SessionsService).create({
        workspaceId,
        agentName: 'scripted',
        actor: own.actor,
      })
      return id
    }
    const write = async (id: string, turns: number, each: number) => {
      await logs.use(id, async log => {
        for (let turn = 0; turn < turns; turn++) {
          const turnId = `trn_${turn}`
          log.append({ type: 'user_message', turnId, content: { text: 'Go on.' } })
          for (let i = 2; i < each; i++) {
            log.append({ type: 'agent_message', turnId, content: { text: `Part ${i} of what there is to say.` } })
          }
          log.append({ type: 'done', turnId, content: { status: 'completed', stop_reason: 'end_turn' } })
          await log.room()
        }
      })
    }
    const [long, short, model] = [await make(), await make(), await make()]
    await write(long, events / 1000, 1000)
    await write(short, few / 1000, 1000)
    await write(model, 1, 50)
    for (const id of [long, short, model]) await (seen.service as SessionsService).stop(id, { reason: 'completed' })
    for (const id of [long, short, model]) await logs.close(id)
    const row = table.get(model)
    if (!row) throw new Error('the session is not there')
    for (let from = 0; from < count; from += BATCH) {
      const ids = Array.from({ length: Math.min(BATCH, count - from) }, () => own.ids.id('ses'))
      for (const id of ids) {
        cpSync(path.join(home, 'sessions', model), path.join(home, 'sessions', id), { recursive: true })
      }
      await own.db.tx(t => {
        for (const [i, id] of ids.entries()) {
          table.insert(t, {
            ...row,
            id,
            name: `number ${from + i}`,
            created_at: row.created_at + from + i,
            last_activity_at: row.last_activity_at + from + i,
          })
        }
      })
    }
    await kernel.close()
    return { workspace: workspaceId, long, short }
  },
}
export type SessionsFill = typeof handlers
answer(handlers)
