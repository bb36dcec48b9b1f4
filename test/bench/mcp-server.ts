// A bare server of the MCP SDK: node mcp-server.js FILE lists the tools in the file and answers every call with the text in it.
import { readFileSync } from 'node:fs'
import { Server, type Tool } from '@modelcontextprotocol/server'
import { StdioServerTransport } from '@modelcontextprotocol/server/stdio'

/** What such a server is made of. */
export interface Served {
  readonly tools: Tool[]
  readonly text: string
}

const { tools, text }: Served = JSON.parse(readFileSync(process.argv[2] as string, 'utf8'))
const server = new Server({ name: 'bare', version: '1.0.0' }, { capabilities: { tools: {} } })
server.setRequestHandler('tools/list', () => ({ tools }))
server.setRequestHandler('tools/call', () => ({ content: [{ type: 'text' as const, text }] }))
await server.connect(new StdioServerTransport())
