import * as v from 'valibot'
import { type Awaitable, event, type Fault, type Hook, type Plugin, registry, token } from '../../kernel/plugin.js'
import type { Manifest, SourceTier } from './manifest.js'

export { ExtensionErrors } from './errors.js'
export {
  isAtLeast,
  Manifest,
  manifestFileNames,
  parseManifest,
  publishFamilies,
  RelativePath,
  readManifest,
  type SourceTier,
  toolId,
} from './manifest.js'
export { resolveInside } from './paths.js'

/** The status of Behaviour 3.3. */
export type ExtensionStatus = 'disabled' | 'enabled' | 'registered' | 'active' | 'error'

/** An extension whose manifest is valid, as others see it. */
export interface InstalledExtension {
  readonly name: string
  readonly version: string
  /** Absolute, symlinks resolved. */
  readonly root: string
  readonly manifest: Manifest
  readonly enabled: boolean
  readonly state: ExtensionStatus
  readonly tier: SourceTier
  /** SHA-256 of the manifest, hex. */
  readonly digest: string
  /** Of one with code in the daemon: the file of its plugin, absolute, and what that registers. */
  readonly code?: { readonly module: string; readonly surface: Plugin['surface'] }
}

/** One thing that an extension ships. */
export interface ShippedItem {
  readonly kind: string
  readonly id: string
  readonly name: string
  /** It is in use by the daemon now. */
  readonly live: boolean
}

/**
 * Reads one key below `[resources]` of manifests, on behalf of the plugin that has the noun. What no family reads is shown as
 * waiting for its owner.
 */
export interface ResourceFamily {
  /** Key below `[resources]`, `bundles` say. */
  readonly name: string
  /**
   * Reads and checks what a loaded extension has of this family; called again whenever the extension changes. A throw makes
   * the extension `error` with this text; at a change it stays with what this call then has to leave as it was.
   */
  readonly load: (extension: InstalledExtension) => Awaitable<readonly ShippedItem[]>
  /** The extension is loaded no longer. */
  readonly unload?: (name: string) => Awaitable<void>
}

export const ResourceFamilies = registry<ResourceFamily>('extensions.families@1')

export interface ExtensionsApi {
  /** Those with a valid manifest, by name, whether loaded or not. */
  installed(): readonly InstalledExtension[]
  /**
   * Calls a service method of the process of an extension, `tools/call` say.
   * @throws Fault `extension_not_found`, `extension_not_running`, `extension_method_missing`, `extension_call_failed`
   */
  call(name: string, method: string, params: unknown): Promise<unknown>
  /** The set of loaded extensions, or one of them, changed; the names. */
  readonly changed: Hook<(names: readonly string[]) => unknown>
  /** May the extension be disabled or removed; a refusal is a 409 that names what depends on it. */
  readonly disabling: Hook<(name: string) => Promise<Fault | undefined>>
}

export const Extensions = token<ExtensionsApi>('extensions@1')

const named = v.object({ name: v.string(), version: v.optional(v.string()) })
const failed = v.object({ name: v.string(), error: v.string() })
export const ExtensionEnabled = event('extension.enabled', named)
export const ExtensionDisabled = event('extension.disabled', named)
export const ExtensionReloaded = event('extension.reload.completed', named)
export const ExtensionReloadFailed = event('extension.reload.failed', failed)
export const ExtensionDevLinked = event('extension.dev.linked', v.object({ name: v.string(), workspace: v.string() }))
export const ExtensionDevUnlinked = event(
  'extension.dev.unlinked',
  v.object({ name: v.string(), workspace: v.string() }),
)
