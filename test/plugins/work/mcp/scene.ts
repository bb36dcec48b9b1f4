import { mkdir, realpath, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Clock, operator, type PluginKernel } from '../../../../kernel/plugin.js'
import { inTree } from '../../../../plugins/index.js'
import { type OfferedTool, type ToolBackend, ToolBackends, type ToolPlace } from '../../../../plugins/work/tools/api.js'
import { probe } from '../../../../testing/traces.js'
import { boot, type TestKernel, temporaryFolder } from '../../../harness/kernel.js'

const modules = fileURLToPath(new URL('../../../../node_modules/', import.meta.url))
export const EVERYTHING = path.join(modules, '@modelcontextprotocol/server-everything/dist/index.js')
export const FILESYSTEM = path.join(modules, '@modelcontextprotocol/server-filesystem/dist/index.js')
/** A server that does what a test tells it to do, by its arguments. */
export const HOSTILE = fileURLToPath(new URL('./hostile-server.mjs', import.meta.url))

export interface McpScene extends TestKernel {
  readonly inside: PluginKernel
  readonly backend: ToolBackend
  put(name: string, server: object, query?: string): ReturnType<TestKernel['request']>
  tools(place?: ToolPlace): Promise<readonly OfferedTool[]>
  /** Calls a tool as the backend is asked to; the code and reasons of the fault instead of a result. */
  call(
    id: string,
    input: object,
    place?: ToolPlace,
  ): Promise<{ text?: string; code?: string; why?: string; reasons?: string }>
  workspace(files?: Readonly<Record<string, string>>): Promise<{ readonly id: string; readonly root: string }>
}

/** All plugins, and a look at what MCP contributes to the tools. */
export async function mcpScene(
  options: { home?: string; env?: Record<string, string>; clock?: Clock } = {},
): Promise<McpScene> {
  const home = options.home ?? (await temporaryFolder('home'))
  const looking = probe({})
  const kernel = await boot({
    plugins: [...inTree, looking.plugin],
    home,
    ...(options.clock && { clock: options.clock }),
    env: { PATH: process.env.PATH, HOME: home, SVC_HOME: home, ...options.env },
  })
  const inside = looking.kernel()
  const entry = inside.collect(ToolBackends).find(({ owner }) => owner === 'mcp')
  if (!entry) throw new Error('there is no backend of MCP')
  const backend = entry.entry
  return {
    ...kernel,
    inside,
    backend,
    put: (name, server, query = '') =>
      kernel.request('PUT', `/api/settings/mcp-servers/${name}${query}`, { server: { name, ...server } }),
    tools: async (place = {}) => backend.tools(place),
    async call(id, input, place = {}) {
      const tool = (await backend.tools(place)).find(({ descriptor }) => descriptor.id === id)
      if (!tool) return { code: 'no_such_tool' }
      const by = { ...place, actor: operator, signal: new AbortController().signal }
      try {
        const { content } = await backend.call(tool.descriptor, input as Record<string, unknown>, by)
        return { text: content.map(({ text }) => text).join('') }
      } catch (error) {
        const { code, message, details } = error as { code: string; message: string; details?: Record<string, string> }
        return { code, why: message, reasons: details?.reason_codes ?? '' }
      }
    },
    async workspace(files = {}) {
      const root = await realpath(await temporaryFolder('root'))
      for (const [name, text] of Object.entries(files)) {
        await mkdir(path.dirname(path.join(root, name)), { recursive: true })
        await writeFile(path.join(root, name), text)
      }
      const { body } = await kernel.request('POST', '/api/workspaces/resolve', { path: root })
      return { id: body.workspace.id as string, root }
    },
  }
}
