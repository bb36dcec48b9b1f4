import { mkdir, writeFile } from 'node:fs/promises'
import path from 'node:path'
import type { Plugin } from '../../../../kernel/plugin.js'
import { auth, extensions, identity, tools } from '../../../../plugins/index.js'
import { agentText, openWorld, type World } from '../../../fixtures/session-world.js'
import { ask } from '../../../kernel/http/doors.js'

// biome-ignore lint/suspicious/noExplicitAny: as it is on the wire
export type Wire = any

export interface Caller {
  readonly id: string
  readonly at: string
  /** A request over the socket of the session. */
  ask(method: string, url: string, body?: unknown): Promise<{ status: number; body: Wire }>
  /** Calls a tool as the agent of the session. */
  call(tool: string, input?: unknown, more?: object): Promise<{ status: number; body: Wire }>
}

export interface Scene {
  readonly world: World
  /** A request of the operator. */
  operator(method: string, url: string, body?: unknown): Promise<{ status: number; body: Wire }>
  /** An agent with these lines in the head of its definition, in a session of its own. */
  agent(name: string, options?: { permissions?: string; lines?: readonly string[]; sandbox?: string }): Promise<Caller>
  /** Decides the only call that waits, once one does. */
  decide(decision: 'allow' | 'reject', more?: object): Promise<Wire>
  close(): Promise<void>
}

/** An extension with a process whose tools do what they are told. */
export const EXTENSION = {
  'extension.toml': `name = "clock"
version = "1.0.0"
[subprocess]
command = "node"
args = ["main.mjs"]
[capabilities]
provides = ["tool.provider"]
[[tools]]
id = "now"
handler = "now"
description = "Tell what time it is in a zone"
read_only = true
input_schema = '{"type":"object","properties":{"zone":{"type":"string","maxLength":40}},"required":["zone"],"additionalProperties":false}'
[[tools]]
id = "large"
handler = "large"
read_only = true
input_schema = '{"type":"object","properties":{"bytes":{"type":"integer"}}}'
[[tools]]
id = "fail"
handler = "fail"
[[tools]]
id = "ghost"
handler = "ghost"
`,
  'main.mjs': `import { createInterface } from 'node:readline'
const say = message => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\\n')
const tools = {
  now: ({ zone }) => ({ zone, time: '12:00' }),
  large: ({ bytes = 1000 }) => 'x'.repeat(bytes),
  fail: () => { throw new Error('the clock stands still') },
}
const methods = {
  initialize: ({ capabilities, extension }) => ({
    protocol_version: '1',
    extension_info: { name: extension.name, version: extension.version },
    accepted_capabilities: { provides: capabilities.provides, permissions: capabilities.granted_permissions },
    implemented_methods: ['health_check', 'shutdown', 'provide_tools', 'tools/call'],
    supported_hook_events: [],
    supports: { health_check: true },
  }),
  health_check: () => ({ healthy: true }),
  shutdown: () => { setImmediate(() => process.exit(0)); return { acknowledged: true } },
  provide_tools: () => ({ tools: Object.keys(tools).map(id => ({ id, handler: id })) }),
  'tools/call': ({ tool, input }) => tools[tool](input),
}
createInterface({ input: process.stdin }).on('line', async line => {
  const { id, method, params } = JSON.parse(line)
  if (!method) return
  try { say({ id, result: await methods[method](params) }) }
  catch (error) { say({ id, error: { code: -32000, message: error.message } }) }
})
`,
}

export async function openScene(
  options: { config?: object; plugins?: readonly Plugin[]; extension?: boolean } = {},
): Promise<Scene> {
  const world = await openWorld({
    plugins: [auth, identity, extensions, tools, ...(options.plugins ?? [])],
    listen: ['socket'],
    config: options.config ?? {},
  })
  if (options.extension) {
    const folder = path.join(world.home, 'extensions', 'clock')
    await mkdir(folder, { recursive: true })
    for (const [name, text] of Object.entries(EXTENSION)) await writeFile(path.join(folder, name), text)
    await until(async () => {
      const { body } = await world.kernel.request('GET', '/api/tools/ext__clock__ghost')
      return body.tool?.availability.reason_codes?.includes('runtime_descriptor_missing')
    }, 'the tools of the extension')
  }
  const operator = (method: string, url: string, body?: unknown) => world.kernel.request(method, url, body)
  return {
    world,
    operator,
    async agent(name, { permissions = 'approve-reads', lines = [], sandbox = 'none' } = {}) {
      const folder = path.join(world.home, 'agents', name)
      await mkdir(folder, { recursive: true })
      const head = [
        `name: ${name}`,
        `permissions: ${permissions}`,
        `command: '${process.execPath} ${path.resolve('test/fixtures/acp-agent.mjs')} --modes=default,bypassPermissions'`,
        ...lines,
      ]
      await writeFile(path.join(folder, 'AGENT.md'), `---\n${head.join('\n')}\n---\nYou do what you are told.\n`)
      const { id, at } = await world.session(name, { sandbox })
      const socketPath = /SVC_SOCKET=(.*)/.exec(agentText(await world.prompt(at, 'env SVC_SOCKET')))?.[1] ?? ''
      const requestOf: Caller['ask'] = (method, url, body) =>
        ask({ socketPath }, url, { method, ...(body !== undefined && { body }) })
      return {
        id,
        at,
        ask: requestOf,
        call: (tool, input = {}, more = {}) => requestOf('POST', `/api/tools/${tool}/invoke`, { input, ...more }),
      }
    },
    async decide(decision, more = {}) {
      const id = await until(async () => {
        const { approvals } = (await operator('GET', '/api/tool-approvals')).body
        return approvals.length === 1 ? approvals[0].id : undefined
      }, 'a call that waits')
      const reply = await operator('POST', `/api/tool-approvals/${id}/decide`, { decision, ...more })
      return { id, ...reply }
    },
    close: () => world.close(),
  }
}

/** Asks until there is an answer, however slow the machine is. */
export async function until<T>(request: () => Promise<T | undefined | false>, subject: string): Promise<T> {
  const startedAt = performance.now()
  for (let pause = 5; performance.now() - startedAt < 60_000; pause = Math.min(pause * 1.5, 100)) {
    const answer = await request()
    if (answer) return answer
    await new Promise(resolve => setTimeout(resolve, pause))
  }
  throw new Error(`waited in vain for ${subject}`)
}
