import { type Clock, type Plugin, type PluginState, reasonOf, within } from '../../kernel/plugin.js'
import { Extensions } from './api.js'
import { importPlugin } from './code.js'
import { ExtensionErrors } from './errors.js'
import type { InstanceHost } from './instance-host.js'
import type { Manifest } from './manifest.js'

/** Milliseconds that code has to be imported. Nobody waits for it meanwhile. */
const IMPORT_MS = 20_000
/** Milliseconds that it has to be applied; other changes of plugins wait for that. What takes longer is taken to never end. */
const APPLY_MS = 5000

/** Code that runs within the daemon. */
export interface Code {
  /** SHA-256 of all files of the extension. */
  readonly hash?: string
  readonly plugin?: Plugin
  /** File of the plugin, in the cache. */
  readonly module?: string
}

/**
 * Imports the code of an extension from a copy and applies it in the place of what ran before, which stays if that fails.
 * @param known generation whose code need not be started again when it is still the same
 * @param anew what the boot started, or tried to, is started again
 * @returns the code, and what it waits for
 * @throws Fault or whatever the code throws
 */
export async function bringCode(
  host: InstanceHost,
  manifest: Manifest,
  root: string,
  {
    before,
    known,
    anew,
  }: { readonly before: Code | undefined; readonly known: Code | undefined; readonly anew: boolean },
): Promise<Code & { readonly waits?: string | undefined }> {
  const { name } = manifest
  const { hash, folder } = await host.code.copy(name, root, host.unique())
  if (known?.plugin && known.hash === hash) return { hash, plugin: known.plugin, module: known.module ?? '' }
  const begun = before || anew ? undefined : host.begun(name)
  const state = begun?.hash === hash ? host.stateOf(name) : undefined
  if (begun && state) return { ...begun, waits: waitsFor(name, state) }
  const { plugin, module } = await within(host.clock, IMPORT_MS, importPlugin(folder, manifest))
  // One that takes another place leaves the one that it had.
  if (before?.plugin && before.plugin.replaces !== plugin.replaces) await host.dropIns.remove(name)
  const put = await host.dropIns.put(guarded(host.clock, plugin))
  if (put.status === 'failed') await host.dropIns.remove(name)
  return { hash, plugin, module, waits: waitsFor(name, put) }
}

/** @throws Fault `extension_load_failed` when it failed */
function waitsFor(name: string, state: PluginState): string | undefined {
  if (state.status === 'failed') throw ExtensionErrors.extension_load_failed(`${name} did not start: ${state.error}`)
  return state.status === 'active' ? undefined : reasonOf(state)
}

/** It leaves before its host does, unless its place is that of another, and is given up on when applying it never ends. */
export function guarded(clock: Clock, plugin: Plugin): Plugin {
  const apply: Plugin['apply'] = kernel =>
    within(clock, APPLY_MS, (async (): Promise<unknown> => plugin.apply(kernel))())
  const requires = { ...plugin.requires, ...(plugin.replaces === undefined ? { 'its host': Extensions } : {}) }
  return Object.create(plugin, Object.getOwnPropertyDescriptors({ requires, apply }))
}
