import * as v from 'valibot'
import type { Setting } from '../../../kernel/plugin.js'
import { mapOf } from '../../../schemas/kernel/map-of.js'
import { ServerMembers } from './sources/declaration.js'

const ConfiguredServers = v.pipe(
  mapOf(v.pipe(v.string(), v.minLength(1), v.maxLength(128)), v.strictObject(ServerMembers)),
  v.maxEntries(64),
  v.check(
    servers => Object.values(servers).every(({ command, url }) => (command === undefined) !== (url === undefined)),
    'give each server exactly one of command and url',
  ),
)

/** Whether agents get the daemon as an MCP server. */
export const Hosting: Setting<boolean> = {
  path: 'mcp.hosted',
  section: 'mcp-servers',
  schema: v.pipe(v.boolean(), v.description('Give every session an MCP server with the tools of the daemon')),
  default: true,
  apply: 'session-rebind',
}

/** MCP servers of the home. Those of a workspace are in its own files, which have to be trusted. */
export const McpServers: Setting<v.InferOutput<typeof ConfiguredServers>> = {
  path: 'mcp_servers',
  section: 'mcp-servers',
  schema: v.pipe(ConfiguredServers, v.description('MCP servers by name; each has a command or a url')),
  default: {},
  apply: 'session-rebind',
  merge: 'by-name',
  overlay: true,
}
