import type { JSONRPCMessage, Server } from '@modelcontextprotocol/server'
import * as v from 'valibot'
import { issueLine } from '../../../../kernel/kit/issue-text.js'
import { clip, shown } from '../../../../kernel/kit/text.js'
import { type Actor, JsonText } from '../../../../kernel/plugin.js'
import { mapOf } from '../../../../schemas/kernel/map-of.js'
import {
  type JudgedTool,
  type ToolDescriptor,
  ToolErrors,
  type ToolPlace,
  type ToolRisk,
  type ToolsApi,
} from '../../tools/api.js'
import { answerOf, json, type McpAnswer, refusalOf } from './answers.js'

/** Parameters of a hosted server. */
export interface Hosted {
  readonly tools: ToolsApi
  readonly scope: ToolPlace
  readonly actor: Actor
  readonly version: string
}

interface Listed {
  readonly name: string
  readonly description: string
  readonly inputSchema: { readonly type: 'object'; readonly [member: string]: unknown }
  readonly annotations?: Readonly<Record<string, unknown>>
}

const text = { type: 'string' } as const
const MOST_FOUND = 20

const SearchInput = v.object({
  query: v.optional(v.pipe(v.string(), v.maxLength(500)), ''),
  limit: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(MOST_FOUND)), 8),
})
const ShowInput = v.object({ id: v.pipe(v.string(), v.maxLength(256)) })
const CallInput = v.object({
  id: v.pipe(v.string(), v.maxLength(256)),
  input: v.optional(mapOf(v.string(), v.unknown()), {}),
})

/** Keeps these tools visible in clients that hide tools behind a search, because they are a search themselves. */
const ALWAYS_SHOWN = { _meta: { 'anthropic/alwaysLoad': true } } as const

/** The three tools that agents see, however many tools exist: search, show and call. */
const AGENT_TOOLS: readonly Listed[] = [
  {
    name: 'tool_search',
    description:
      'Find tools by words: tools of this service (sessions, jobs, workspaces, settings), of its extensions and of its MCP servers. Returns ids, descriptions and whether each can be called.',
    inputSchema: {
      type: 'object',
      properties: {
        query: { ...text, description: 'words that describe the tool; empty: all' },
        limit: { type: 'integer', minimum: 1, maximum: MOST_FOUND, description: 'default 8' },
      },
    },
    annotations: { readOnlyHint: true },
  },
  {
    name: 'tool_show',
    description: 'Show one tool: what it does, the JSON Schema of its input, and why it cannot be called if it cannot.',
    inputSchema: { type: 'object', properties: { id: text }, required: ['id'] },
    annotations: { readOnlyHint: true },
  },
  {
    name: 'tool_call',
    description:
      'Call a tool with an input that matches its schema. If a person must approve it, the call waits for the answer.',
    inputSchema: {
      type: 'object',
      properties: { id: text, input: { type: 'object', description: 'input as described by the schema in tool_show' } },
      required: ['id'],
    },
  },
]

const AGENT_TOOLS_TEXT = JSON.stringify(AGENT_TOOLS.map(tool => ({ ...tool, ...ALWAYS_SHOWN })))

/** A server, and the JSON text of its tools when they were last listed. */
export interface ListingServer {
  readonly server: Server
  tools: string
}

/**
 * The answer to `tools/list` with the tools of the server. The protocol library does not see them: checking and serializing a long
 * list takes longer than the rest of a request.
 */
export const withTools = (answer: JSONRPCMessage, { tools }: ListingServer) => ({
  ...answer,
  ...('result' in answer && {
    result: new JsonText(JSON.stringify(answer.result).replace(NO_TOOLS, () => `"tools":${tools}`)),
  }),
})
/** The list in the answer of the protocol library; within a string its quotes would be escaped. */
const NO_TOOLS = '"tools":[]'

/** The MCP server for the agent of a session. */
export async function agentServer(hosted: Hosted): Promise<ListingServer> {
  const { tools, scope, actor } = hosted
  return serverOf(
    hosted,
    async () => AGENT_TOOLS_TEXT,
    async (name, input, signal) => {
      if (name === 'tool_search') {
        const { query, limit } = parsed(SearchInput, input)
        const starting = await tools.complete(scope)
        const found = (await tools.search(scope, query, limit)).map(briefly)
        return json({ tools: found, ...(starting.length > 0 && { incomplete: notYet(starting) }) })
      }
      if (name === 'tool_show') return json(wholly(await tools.find(scope, parsed(ShowInput, input).id)))
      if (name !== 'tool_call') return undefined
      const call = parsed(CallInput, input)
      return answerOf(await tools.call(call.id, call.input, { ...scope, actor, signal }, { wait: true }))
    },
    // An agent may not run these commands, but has equivalent tools.
    next => next.replaceAll(/\bsvc tool (search|show|call)\b/g, 'tool_$1'),
  )
}

/**
 * The MCP server for other clients of the operator: each tool of the allowed risks is listed by itself. A tool that
 * calls other tools is not listed, since it would bypass the risk limit.
 */
export async function operatorServer(hosted: Hosted, risks: readonly ToolRisk[]): Promise<ListingServer> {
  const { tools, scope, actor } = hosted
  const isServed = ({ risk, judgedInside }: ToolDescriptor) => !judgedInside && risks.includes(risk)
  let made: { readonly of: readonly JudgedTool[]; readonly text: string } | undefined
  const list = async () => {
    const of = await tools.list(scope)
    if (made?.of !== of) {
      const served = of.filter(({ descriptor }) => isServed(descriptor))
      made = { of, text: JSON.stringify(served.map(asListed)) }
    }
    return made.text
  }
  return serverOf(hosted, list, async (name, input, signal) => {
    return answerOf(await tools.call(name, input, { ...scope, actor, signal }, { wait: true, among: isServed }))
  })
}

async function serverOf(
  { version }: Hosted,
  list: () => Promise<string>,
  call: (name: string, input: unknown, signal: AbortSignal) => Promise<McpAnswer | undefined>,
  called?: (next: string) => string,
): Promise<ListingServer> {
  const { Server } = await import('@modelcontextprotocol/server')
  const server = new Server({ name: 'svc', version }, { capabilities: { tools: {} } })
  const made = { server, tools: '[]' }
  server.setRequestHandler('tools/list', async () => {
    made.tools = await list()
    return { tools: [] }
  })
  server.setRequestHandler(
    'tools/call',
    async ({ params: { name, arguments: input = {} } }, { mcpReq: { signal } }) => {
      try {
        return (await call(name, input, signal)) ?? refusalOf(noTool(name))
      } catch (error) {
        return refusalOf(error, called)
      }
    },
  )
  return made
}

/** Validates the input of one of the three tools. @throws Fault `tool_invalid_input` with the problem */
function parsed<S extends v.GenericSchema>(schema: S, input: unknown): v.InferOutput<S> {
  const result = v.safeParse(schema, input)
  if (result.success) return result.output
  const [issue] = result.issues
  throw ToolErrors.tool_invalid_input(`${issueLine(issue, 'input')}`, {
    next: 'tools/list has the schema of the input',
  })
}

const noTool = (name: string) =>
  ToolErrors.tool_not_found(`no such tool: ${shown(name, 256)}`, { next: 'tools/list has those that are there' })

const asListed = ({ descriptor: { id, title, description, inputSchema, risk } }: JudgedTool): Listed => ({
  name: id,
  ...(title !== undefined && { title }),
  description,
  inputSchema: { ...inputSchema, type: 'object' },
  annotations: { readOnlyHint: risk === 'read', destructiveHint: risk === 'destructive' },
})

const notYet = (servers: readonly string[]) =>
  `the servers ${servers.join(', ')} are still starting: search again for their tools`

const briefly = ({ descriptor: { id, title, description, risk }, decision: { callable, reasons } }: JudgedTool) => ({
  id,
  ...(title !== undefined && { title }),
  description: clip(description, 300),
  risk,
  callable,
  ...(reasons.length > 0 && { reasons }),
})

const wholly = (tool: JudgedTool) => ({
  ...briefly(tool),
  description: tool.descriptor.description,
  input_schema: tool.descriptor.inputSchema,
  approval_required: tool.decision.approvalRequired,
  ...(tool.why !== undefined && { why: tool.why }),
})
