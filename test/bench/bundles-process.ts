// A daemon without a listener that has an extension with a large bundle: node bundles-process.ts HOME.
import { mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { createKernel, type Kernel } from '../../kernel/index.js'
import { definePlugin, type PluginKernel } from '../../kernel/plugin.js'
import { inTree } from '../../plugins/index.js'
import { answer } from './child.js'
import { pause } from './measure.js'

const [home = ''] = process.argv.slice(2)
const names = (count: number, prefix: string) => Array.from({ length: count }, (_, n) => `${prefix}-${n}`)
const PROMPT = 'You look after a part of the project and say what you did. '.repeat(20)
const REQUEST = { extension_name: 'bench-kit', bundle_name: 'large', profile_name: 'default' }

const inside = { kernel: undefined as PluginKernel | undefined }
const observer = definePlugin({
  name: 'observer',
  version: '1.0.0',
  service: async () =>
    class {
      constructor(kernel: PluginKernel) {
        inside.kernel = kernel
      }
    },
}).surface({})

let kernel: Kernel

function writeKit(agents: number, jobs: number, layouts: number): void {
  const root = path.join(home, 'extensions', REQUEST.extension_name)
  const write = (file: string, text: string) => {
    mkdirSync(path.dirname(path.join(root, file)), { recursive: true })
    writeFileSync(path.join(root, file), text)
  }
  const desktop = { id: 'd1', name: 'One', order: 0, purpose: 'standard', floating: [], groups: [] }
  const document = { version: 2, workspace_id: '', desktops: [desktop], windows: {}, overrides: {} }
  for (const name of names(agents, 'agent')) write(`agents/${name}/AGENT.md`, `---\nname: ${name}\n---\n${PROMPT}\n`)
  for (const id of names(layouts, 'layout')) {
    const layout = { version: 1, id, display_name: id, aspect: 'any', overflow: 'stack', document }
    write(`layouts/${id}.json`, JSON.stringify(layout))
  }
  const profile = {
    name: REQUEST.profile_name,
    agents: names(agents, 'agent').map(name => ({ path: `agents/${name}` })),
    layouts: names(layouts, 'layout').map(name => ({ path: `layouts/${name}.json` })),
    jobs: names(jobs, 'job').map((name, n) => ({
      name,
      agent: `agent-${n % agents}`,
      prompt: 'Report what has changed since yesterday.',
      schedule: { mode: 'every', interval: '24h' },
    })),
  }
  write('bundles/large.json', JSON.stringify({ name: REQUEST.bundle_name, profiles: [profile] }))
  write(
    'extension.json',
    JSON.stringify({ name: REQUEST.extension_name, version: '1.0.0', resources: { bundles: ['bundles'] } }),
  )
}

async function request(method: 'POST' | 'DELETE', url: string, body?: unknown) {
  const reply = await kernel.inject({ method, url, ...(body === undefined ? {} : { body }) })
  if (reply.status >= 300) throw new Error(`${method} ${url}: ${reply.status} ${reply.body}`)
  return reply.body === '' ? undefined : JSON.parse(reply.body)
}

const handlers = {
  async boot(agents: number, jobs: number, layouts: number): Promise<void> {
    writeKit(agents, jobs, layouts)
    kernel = await createKernel({
      home,
      plugins: [...inTree, observer],
      env: { PATH: process.env.PATH, SVC_HOME: home },
    })
    for (let tries = 0; ; tries++) {
      const { body } = await kernel.inject({ method: 'GET', url: '/api/bundles/catalog' })
      if (JSON.parse(body).bundles?.length > 0) return
      if (tries > 1000) throw new Error('the extension is not loaded')
      await pause(10)
    }
  },

  /** Milliseconds from the request to the reply, when the runtime has taken all up; it is taken away again. */
  async activate(): Promise<number> {
    const began = performance.now()
    const { activation } = await request('POST', '/api/bundles/activations', REQUEST)
    const elapsed = performance.now() - began
    await request('DELETE', `/api/bundles/activations/${activation.id}`)
    return elapsed
  },

  /** Milliseconds of so many records of the size of an agent, in one transaction, until it is on the disk. */
  async plain(count: number): Promise<number> {
    const { db, records, actor } = inside.kernel as PluginKernel
    const ids = names(count, 'plain')
    const spec = { name: 'plain', prompt: PROMPT }
    const began = performance.now()
    await db.tx(t => {
      for (const id of ids) records.put(t, actor, { kind: 'bench.plain', id, scope: { kind: 'global' }, spec })
    })
    const elapsedMs = performance.now() - began
    await db.tx(t => {
      for (const id of ids) records.delete(t, actor, { kind: 'bench.plain', id })
    })
    return elapsedMs
  },
}
export type BundlesProcess = typeof handlers

answer(handlers)
