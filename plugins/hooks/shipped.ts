import { callOf, type InstalledExtension, type ShippedRecord, shippedId } from '../extensions/api.js'
import { HookKind } from './api.js'

/**
 * Declarations of `[[resources.hooks]]`, with the programs and paths of the extension's folder. One without a command is
 * answered by the process of the extension.
 */
export function readHooks(extension: InstalledExtension): Promise<ShippedRecord[]> {
  const { name: from, manifest } = extension
  return Promise.all(
    manifest.resources.hooks.map(async ({ name, command, args, env, ...hook }) => ({
      kind: HookKind,
      id: shippedId('hok', extension, name),
      name,
      spec: {
        ...hook,
        name,
        ...(command === undefined ? { process: true } : await callOf(extension, { command, args, env })),
        metadata: { extension: from },
      },
    })),
  )
}
