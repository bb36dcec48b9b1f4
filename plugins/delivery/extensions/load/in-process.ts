import { command } from '../../../../kernel/kit/commands/command-line.js'
import { type DropInsApi, reasonOf } from '../../../../kernel/platform.js'
import {
  type Clock,
  messageOf,
  type Plugin,
  type PluginKernel,
  type PluginState,
  within,
} from '../../../../kernel/plugin.js'
import { Extensions } from '../api.js'
import { ExtensionErrors } from '../errors.js'
import type { Manifest } from '../manifest/manifest.js'
import { filesOf, importPlugin } from './code.js'
import { placed, syntaxErrorIn, type Where } from './error-location.js'
import type { InstanceHost } from './instance-host.js'
import type { LogRing } from './log-ring.js'
import { formerUses } from './version-one.js'

/** Milliseconds for the import of code. Nothing else waits for it. */
const IMPORT_MS = 20_000
/** Milliseconds for `apply`, which blocks other plugin changes. Code that exceeds it is treated as never returning. */
const APPLY_MS = 5000

/** Code that runs in the daemon. */
export interface Code {
  /** SHA-256 of all files of the extension. */
  readonly hash?: string
  readonly plugin?: Plugin
  /** File of the plugin in the cache; absent while it must not run. */
  readonly module?: string
  /** Former names that its code still uses. */
  readonly former?: readonly string[]
  /** Why the code is loaded but does not run. */
  readonly waits?: string
}

/** State of the code before a load. */
export interface Before {
  readonly before: Code | undefined
  /** Generation that is kept if its code is unchanged. */
  readonly known: Code | undefined
  /** Whether code that the boot started is restarted. */
  readonly anew: boolean
  /** The extension; its log also receives the log of its code. */
  readonly whose: { readonly name: string; readonly key: string; readonly log: LogRing }
}

/**
 * Imports the code of an extension from a copy and applies it instead of the running code, which stays on failure.
 * @returns the code, whose copy the caller has to release
 * @throws Fault `extension_load_failed` with file and line if known, `reload_failed`
 */
export async function bringCode(
  host: InstanceHost,
  manifest: Manifest,
  root: string,
  { before, known, anew, whose }: Before,
): Promise<Code> {
  const { name } = manifest
  const { hash, folder } = await host.code.copy(name, root, host.unique(), manifest.apiVersion)
  try {
    const former = manifest.apiVersion === 1 ? await formerUses(await filesOf(folder)) : []
    if (known?.plugin && known.hash === hash) return { hash, plugin: known.plugin, module: known.module ?? '', former }
    for (const use of former) whose.log.note(use)
    const bootCode = before || anew ? undefined : host.bootCodeOf(whose)
    const running = bootCode?.hash === hash ? host.stateOf(name) : undefined
    if (bootCode && running) {
      // The boot holds a reference to the copy as well, so this one is released.
      host.code.release(hash)
      return { hash, plugin: bootCode.plugin, module: bootCode.module, former, ...waiting(name, running) }
    }
    const where = { folder, root }
    const { plugin, module } = await within(host.clock, IMPORT_MS, importPlugin(folder, manifest)).catch(
      async error => {
        const syntax = error instanceof SyntaxError && (await syntaxErrorIn(host, where))
        throw ExtensionErrors.extension_load_failed(`${name} did not load: ${syntax || placed(error, where)}`, {
          next: command('extension logs', name),
          cause: error,
        })
      },
    )
    // Code that replaces a different plugin than before is removed from its former place first.
    if (before?.plugin && before.plugin.replaces !== plugin.replaces) await host.dropIns.remove(name)
    const state = await host.dropIns.put(guarded(host.clock, overheard(plugin, whose.log), where))
    if (state.status === 'failed') await host.dropIns.remove(name)
    return { hash, plugin, module, former, ...waiting(name, state) }
  } catch (error) {
    host.code.release(hash)
    throw error
  }
}

/** A placeholder for code that must not run. The code is not imported either, because its top level could loop forever. */
export async function standIn(dropIns: DropInsApi, { name, version }: Manifest): Promise<Code> {
  const plugin: Plugin = { name, version, requires: {}, surface: {}, apply: () => undefined }
  await dropIns.put(plugin)
  return { plugin }
}

/** @throws Fault `extension_load_failed` when it failed */
function waiting(name: string, state: PluginState): Pick<Code, 'waits'> {
  if (state.status === 'failed') {
    const { error, next } = state
    throw ExtensionErrors.extension_load_failed(`${name} did not start: ${error}`, {
      next: next ?? command('extension logs', name),
    })
  }
  return state.status === 'active' ? {} : { waits: reasonOf(state) }
}

/** Removes the plugin before the extensions plugin unless it replaces another one, and limits the time of `apply`. */
export function guarded(clock: Clock, plugin: Plugin, where: Where): Plugin {
  const apply: Plugin['apply'] = async kernel => {
    try {
      return await within(clock, APPLY_MS, (async (): Promise<unknown> => plugin.apply(kernel))())
    } catch (error) {
      throw new Error(placed(error, where), { cause: error })
    }
  }
  const requires = { ...plugin.requires, ...(plugin.replaces === undefined ? { 'its host': Extensions } : {}) }
  return Object.create(plugin, Object.getOwnPropertyDescriptors({ requires, apply }))
}

/** Copies the plugin's log to the log of the extension. */
export function overheard(plugin: Plugin, ring: LogRing): Plugin {
  const apply: Plugin['apply'] = kernel => {
    const level = (name: keyof PluginKernel['log']) => (text: string, fields?: Readonly<Record<string, unknown>>) => {
      kernel.log[name](text, fields)
      ring.line(`${name}: ${text}${fields === undefined ? '' : ` ${textOfFields(fields)}`}`)
    }
    const log = { debug: level('debug'), info: level('info'), warn: level('warn'), error: level('error') }
    return plugin.apply({ ...kernel, log })
  }
  return Object.create(plugin, { apply: { value: apply } })
}

function textOfFields(fields: Readonly<Record<string, unknown>>): string {
  try {
    return JSON.stringify(fields)
  } catch (error) {
    return messageOf(error)
  }
}
