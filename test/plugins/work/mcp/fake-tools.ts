import { definePlugin, iso } from '../../../../kernel/plugin.js'
import {
  type JudgedTool,
  NativeTools,
  ToolBackends,
  type ToolCaller,
  ToolErrors,
  ToolKind,
  Tools,
  type ToolsApi,
  toolFault,
} from '../../../../plugins/work/tools/api.js'

const toolOf = (name: string, risk: 'read' | 'destructive'): JudgedTool => ({
  descriptor: {
    id: `service__${name}`,
    description: `the tool ${name}`,
    inputSchema: { type: 'object', properties: { text: { type: 'string' } } },
    risk,
    visibility: 'model',
    backend: { kind: 'native' },
    digest: name,
    owner: 'test',
  },
  decision: { callable: true, approvalRequired: risk !== 'read', reasons: [] },
})

/** Tools that tell who called them. */
export class FakeTools implements ToolsApi {
  readonly calls: { id: string; input: unknown; by: ToolCaller; aborted: boolean }[] = []
  readonly #tools = [toolOf('echo', 'read'), toolOf('remove_all', 'destructive'), toolOf('wait', 'read')]

  list = async () => this.#tools
  search = async (_: unknown, query: string, limit: number) =>
    this.#tools.filter(({ descriptor }) => descriptor.description.includes(query)).slice(0, limit)
  complete = async () => this.starting
  /** Servers whose tools are not known yet. */
  starting: readonly string[] = []
  find = async (_: unknown, id: string) => {
    const tool = this.#tools.find(({ descriptor }) => descriptor.id === id)
    if (!tool) throw toolFault('tool_not_found', [])
    return tool
  }
  digest = () => iso(0)
  readonly calling = { name: 'calling', tap: () => {} }
  readonly called = { name: 'called', tap: () => {} }
  async call(id: string, input: unknown, by: ToolCaller) {
    const call = { id, input, by, aborted: false }
    this.calls.push(call)
    if (id === 'service__remove_all') throw toolFault('tool_denied', ['approval_timed_out'], 'nobody allowed it')
    if (id === 'service__wait')
      await new Promise<void>(resolve =>
        by.signal.addEventListener('abort', () => {
          call.aborted = true
          resolve()
        }),
      )
    const text = JSON.stringify(input)
    return {
      toolId: id,
      result: { content: [{ type: 'text', text }] },
      bytes: text.length,
      truncated: false,
      durationMs: 1,
    }
  }
}

/** In the place of the plugin of tools. */
export const fakeTools = (tools: FakeTools) =>
  definePlugin({
    name: 'tools',
    version: '0.1.0',
    provides: Tools,
    service: async () =>
      class {
        constructor() {
          // biome-ignore lint/correctness/noConstructorReturn: the test looks at the one that it made
          return tools
        }
      } as never,
  }).surface({
    kinds: [ToolKind],
    declares: [ToolBackends, NativeTools],
    errors: [ToolErrors],
  })
