import { type InstalledExtension, type Shipment, toolId } from '../../delivery/extensions/api.js'
import { ToolKind } from './api.js'

/** Tools of `[[tools]]`; a tool's id is the same everywhere, so it is also the id of its record. */
export function readTools({ key, name, manifest }: InstalledExtension): Shipment {
  const records = manifest.tools.map(({ id: short, command, backend: _, ...tool }) => {
    const id = toolId(name, short)
    return {
      kind: ToolKind,
      id,
      name: id,
      spec: {
        ...tool,
        id,
        backend: { kind: 'extension_host', extension_id: key, handler: tool.handler },
        ...(command ? { command: command.verb } : {}),
      },
    }
  })
  const brings = manifest.tools.map(({ id, risk }) => ({
    kind: 'tool' as const,
    name: toolId(name, id),
    ...(risk === undefined ? {} : { about: `risk ${risk}` }),
  }))
  return { records, brings }
}
