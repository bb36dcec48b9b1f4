// A kernel with the audit or without it, a process of its own: what it does is asked for by name.
import * as v from 'valibot'
import { createKernel } from '../../kernel/index.js'
import { definePlugin, kind, operator, type Plugin, type PluginKernel } from '../../kernel/plugin.js'
import { audit, base } from '../../plugins/index.js'
import { answer } from './child.js'

const Note = kind({ name: 'bench.note', spec: v.object({ text: v.string() }), maxBytes: 4096, onDemand: true })
const AT_ONCE = 64
let inside: PluginKernel
let n = 0
let isAudited = false

const plugin = definePlugin({
  name: 'bench',
  version: '1.0.0',
  service: async () =>
    class {
      constructor(own: PluginKernel) {
        inside = own
      }
    },
}).surface({ kinds: [Note] }) as Plugin

const handlers = {
  async open(home: string, withAudit: boolean): Promise<void> {
    isAudited = withAudit
    const plugins = [...base, ...(withAudit ? [audit] : []), plugin]
    await createKernel({ home, plugins, env: { HOME: home, SVC_HOME: home } })
  },

  /** Milliseconds of processor time of one durable write of a record, among so many; 64 are under way at once. */
  async put(count: number): Promise<number> {
    const before = process.cpuUsage()
    for (let done = 0; done < count; done += AT_ONCE)
      await Promise.all(
        Array.from({ length: AT_ONCE }, () => {
          const write = { kind: Note.name, id: `n${n++}`, spec: { text: 'x'.repeat(200) }, scope: { kind: 'global' } }
          return inside.db.tx(t => inside.records.put(t, operator, write as never))
        }),
      )
    const { user, system } = process.cpuUsage(before)
    const entries = isAudited ? Number(inside.db.row('SELECT max(seq) FROM audit_entry')?.[0] ?? 0) : n
    if (entries < n) throw new Error(`${entries} audit entries of ${n} writes`)
    return (user + system) / 1000 / count
  },
}

export type AuditHandlers = typeof handlers
answer(handlers)
