import {
  broughtHook,
  callOf,
  type InstalledExtension,
  type Shipment,
  shippedId,
} from '../../delivery/extensions/api.js'
import { HookKind } from './api.js'

/**
 * Reads `[[resources.hooks]]`, with commands resolved in the extension folder. A hook without a command is handled by the
 * process of the extension.
 */
export async function readHooks(extension: InstalledExtension): Promise<Shipment> {
  const { name: from, manifest } = extension
  const records = await Promise.all(
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
  return { records, brings: manifest.resources.hooks.map(hook => broughtHook(hook.name, hook)) }
}
