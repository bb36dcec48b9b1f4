// A bare server of the MCP SDK: node mcp-server.js FILE lists the tools in the file and answers every call with the text in it.
import { readFileSync } from 'node:fs'
import { Server } from '@modelcontextprotocol/sdk/server/index.js'
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js'
import { CallToolRequestSchema, ListToolsRequestSchema, type Tool } from '@modelcontextprotocol/sdk/types.js'

/** What such a server is made of. */
export interface Served {
  readonly tools: Tool[]
  readonly text: string
}

const { tools, text }: Served = JSON.parse(readFileSync(process.argv[2] as string, 'utf8'))
const server = new Server({ name: 'bare', version: '1.0.0' }, { capabilities: { tools: {} } })
server.setRequestHandler(ListToolsRequestSchema, () => ({ tools }))
server.setRequestHandler(CallToolRequestSchema, () => ({ content: [{ type: 'text' as const, text }] }))
await server.connect(new StdioServerTransport())
