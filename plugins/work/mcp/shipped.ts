import {
  broughtServer,
  callOf,
  type InstalledExtension,
  type Shipment,
  shippedId,
} from '../../delivery/extensions/api.js'
import { McpServerKind } from './api.js'

/** Servers in `[resources.mcp_servers]`, with paths resolved in the extension's folder. */
export async function readServers(extension: InstalledExtension): Promise<Shipment> {
  const servers = Object.entries(extension.manifest.resources.mcp_servers)
  const records = await Promise.all(
    servers.map(async ([name, { command, args, env, ...server }]) => ({
      kind: McpServerKind,
      id: shippedId('mcp', extension, name),
      name,
      spec: {
        ...server,
        name,
        ...(await callOf(extension, { command, args, env })),
      },
    })),
  )
  return { records, brings: servers.map(([name, server]) => broughtServer(name, server)) }
}
