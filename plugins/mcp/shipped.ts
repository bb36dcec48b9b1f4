import { callOf, type InstalledExtension, type ShippedRecord, shippedId } from '../extensions/api.js'
import { McpServerKind } from './api.js'

/** Servers of `[resources.mcp_servers]`, with the programs and paths of the extension's folder. */
export function readServers(extension: InstalledExtension): Promise<ShippedRecord[]> {
  return Promise.all(
    Object.entries(extension.manifest.resources.mcp_servers).map(async ([name, { command, args, env, ...server }]) => ({
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
}
