import { type InstalledExtension, type ResourceFamily, type ShippedRecord, toolId } from '../extensions/api.js'
import { ToolKind } from './api.js'

export class ToolsService {
  /** How extensions have the tools of their process read. */
  family(): ResourceFamily {
    return { name: 'tools', kinds: [ToolKind], load: extension => ({ records: readTools(extension) }) }
  }
}

/** Tools of `[[tools]]`; a tool has one id wherever it is called, so it is also that of its record. */
function readTools({ key, name, manifest }: InstalledExtension): ShippedRecord[] {
  return manifest.tools.map(({ id: short, command, backend: _, ...tool }) => {
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
}
