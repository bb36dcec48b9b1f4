import * as v from 'valibot'
import { command } from '../../../../kernel/kit/commands/command-line.js'
import { faultOf, within } from '../../../../kernel/plugin.js'
import { type InstalledExtension, toolId } from '../../../delivery/extensions/api.js'
import {
  type OfferedTool,
  type ReasonCode,
  type ToolBackend,
  type ToolCaller,
  type ToolContent,
  type ToolDescriptor,
  ToolKind,
  type ToolPlace,
  type ToolResult,
  type ToolSpec,
  toolFault,
} from '../api.js'
import { digestOf } from '../digest.js'
import type { K } from '../needs.js'
import { readTools } from '../shipped.js'

/** Milliseconds for a process to list its tools. */
const PROVIDE_MS = 1000

/** Tools that an extension's process provides, by their ids in the manifest. */
type Provided = ReadonlyMap<string, { readonly handler?: string }>

/**
 * Tools of extension processes, as declared in their manifests, and records of tools without a provider, which are
 * unavailable.
 */
export class ExtensionBackend implements ToolBackend {
  readonly kind = 'extension_host'
  #lists = new Map<string, readonly OfferedTool[]>()
  /** The provided tools by the key of the extension and the digest of its manifest. */
  readonly #provided = new Map<string, Provided>()
  readonly #pending = new Set<string>()

  constructor(private readonly kernel: K) {}

  /** Drops cached lists after a change of extensions or records. */
  renew(names?: readonly string[]): void {
    this.#lists = new Map()
    for (const key of [...this.#provided.keys()])
      if (!names || names.some(name => key.startsWith(`${name}\n`))) this.#provided.delete(key)
  }

  tools({ workspaceId = '' }: ToolPlace): readonly OfferedTool[] {
    const known = this.#lists.get(workspaceId)
    if (known) return known
    const here = this.kernel.needs.extensions
      .installed()
      .filter(({ workspace }) => workspace === undefined || workspace === workspaceId)
    const offered = here.flatMap(extension => (extension.manifest.tools.length === 0 ? [] : this.#toolsOf(extension)))
    const provided = new Set(offered.map(({ descriptor }) => descriptor.id))
    const recordTools = this.kernel.records
      .list({ kind: ToolKind })
      .filter(({ scope, spec }) => !provided.has(spec.id) && (scope.kind !== 'workspace' || scope.id === workspaceId))
      .filter(({ source }) => source.kind !== 'extension')
      .map(record => ({
        descriptor: { ...describe(record.spec, record.owner.id), record: { id: record.id, version: record.version } },
        unavailable: ['runtime_descriptor_missing' as const],
        why: 'a record declares it, but no extension provides it',
      }))
    const list = [...offered, ...recordTools]
    this.#lists.set(workspaceId, list)
    return list
  }

  async call(tool: ToolDescriptor, input: Readonly<Record<string, unknown>>, by: ToolCaller): Promise<ToolResult> {
    const { extensionId = '', handler = '' } = tool.backend
    const short = this.#shortOf(extensionId, tool.id)
    try {
      const response = this.kernel.needs.extensions.call(extensionId, 'tools/call', {
        tool: short ?? handler,
        handler,
        input,
        context: { workspace_id: by.workspaceId, session_id: by.sessionId, agent_name: by.agentName },
      })
      return resultOf(await response)
    } catch (error) {
      const { code, message } = faultOf(error)
      if (code === 'extension_not_running' || code === 'extension_not_found')
        throw toolFault('tool_unavailable', ['backend_unhealthy'], message, {
          toolId: tool.id,
          next: command('extension logs', extensionId),
        })
      if (code === 'extension_method_missing')
        throw toolFault('tool_unavailable', ['backend_not_executable'], message, { toolId: tool.id })
      throw toolFault('tool_backend_failed', [], message, {
        toolId: tool.id,
        next: command('extension logs', extensionId),
      })
    }
  }

  #shortOf(key: string, id: string): string | undefined {
    const extension = this.kernel.needs.extensions.installed().find(one => one.key === key)
    return extension?.manifest.tools.find(tool => toolId(extension.name, tool.id) === id)?.id
  }

  #toolsOf(extension: InstalledExtension): OfferedTool[] {
    const { key, name, manifest, digest, state } = extension
    const provided = state === 'active' ? this.#ask(`${name}\n${key}\n${digest}`, key) : undefined
    return (readTools(extension).records ?? []).flatMap(({ spec }) => {
      const parsed = v.safeParse(ToolKind.spec, spec)
      if (!parsed.success) return []
      const tool = parsed.output
      const short = manifest.tools.find(({ id }) => toolId(name, id) === tool.id)
      const [reason, why] = this.#obstacle(extension, tool, provided, short?.id ?? '') ?? []
      // The digest covers the manifest: a new version needs a new approval.
      const descriptor = { ...describe(tool, name), digest: digestOf([tool, digest]) }
      return [{ descriptor, unavailable: reason ? [reason] : [], ...(why === undefined ? {} : { why }) }]
    })
  }

  #obstacle(
    { name, enabled, state, manifest }: InstalledExtension,
    tool: ToolSpec,
    provided: Provided | undefined,
    short: string,
  ): readonly [ReasonCode, string] | undefined {
    if (!enabled) return ['extension_inactive', `${name} is disabled: ${command('extension enable', name)}`]
    if (!manifest.capabilities.provides.includes('tool.provider'))
      return ['extension_capability_missing', `${name} does not declare provides = ["tool.provider"]`]
    if (state !== 'active')
      return ['backend_unhealthy', `the process of ${name} does not run: ${command('extension logs', name)}`]
    const lacking = (tool.requires_env ?? []).filter(variable => !this.kernel.env[variable])
    if (lacking.length > 0) return ['dependency_missing', `${name} needs ${lacking.join(', ')} in the environment`]
    if (!provided) return undefined
    const providedTool = provided.get(short)
    if (!providedTool) return ['runtime_descriptor_missing', `the process of ${name} does not provide it`]
    return providedTool.handler === undefined || providedTool.handler === tool.handler
      ? undefined
      : [
          'runtime_descriptor_mismatch',
          `the process of ${name} provides it with a handler that differs from its manifest`,
        ]
  }

  /** Tools that the process provides; requested once, and undefined until the answer arrives. */
  #ask(workspaceId: string, key: string): Provided | undefined {
    const known = this.#provided.get(workspaceId)
    if (known || this.#pending.has(workspaceId)) return known
    this.#pending.add(workspaceId)
    const answered = within(this.kernel.clock, PROVIDE_MS, this.kernel.needs.extensions.call(key, 'provide_tools', {}))
    void answered
      .then(answer => {
        if (this.kernel.scope.signal.aborted) return
        this.#provided.set(workspaceId, providedOf(answer))
        this.#lists = new Map()
      })
      .catch(() => {})
      .finally(() => this.#pending.delete(workspaceId))
    return undefined
  }
}

function providedOf(answer: unknown): Provided {
  const { tools } = Object(answer) as { tools?: unknown }
  const entries = (Array.isArray(tools) ? tools.slice(0, 1000) : []) as readonly { id?: unknown; handler?: unknown }[]
  return new Map(
    entries.flatMap(tool =>
      typeof tool?.id === 'string'
        ? [[tool.id, typeof tool.handler === 'string' ? { handler: tool.handler } : {}] as const]
        : [],
    ),
  )
}

/** Converts a record to a descriptor. */
function describe(spec: ToolSpec, owner: string): ToolDescriptor {
  const { backend } = spec
  return {
    id: spec.id,
    ...(spec.display_title === undefined ? {} : { title: spec.display_title }),
    description: spec.description,
    inputSchema: spec.input_schema,
    ...(spec.output_schema === undefined ? {} : { outputSchema: spec.output_schema }),
    risk: spec.risk,
    visibility: spec.visibility,
    backend: {
      kind: backend.kind,
      ...(backend.extension_id === undefined ? {} : { extensionId: backend.extension_id }),
      ...(backend.handler === undefined ? {} : { handler: backend.handler }),
      ...(backend.mcp_server === undefined ? {} : { mcpServer: backend.mcp_server }),
      ...(backend.mcp_tool === undefined ? {} : { mcpTool: backend.mcp_tool }),
      ...(backend.native_name === undefined ? {} : { nativeName: backend.native_name }),
    },
    owner,
    toolsets: spec.toolsets ?? [],
    tags: spec.tags ?? [],
    concurrencySafe: spec.concurrency_safe,
    requiresInteraction: spec.requires_interaction,
    maxResultBytes: spec.max_result_bytes,
    digest: digestOf(spec),
  }
}

/** Converts an answer of a process: content in the form of the Model Context Protocol, else the value as JSON. */
function resultOf(answer: unknown): ToolResult {
  const { content, isError, structuredContent } = Object(answer) as Record<string, unknown>
  if (Array.isArray(content) && content.every(part => typeof Object(part).type === 'string')) {
    return {
      content: content as ToolContent[],
      ...(structuredContent === undefined ? {} : { structured: structuredContent }),
      ...(isError === true ? { isError } : {}),
    }
  }
  const text = typeof answer === 'string' ? answer : JSON.stringify(answer ?? null)
  return { content: [{ type: 'text', text }], ...(typeof answer === 'string' ? {} : { structured: answer }) }
}
