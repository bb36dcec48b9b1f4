import * as v from 'valibot'
import {
  type Actor,
  type Awaitable,
  event,
  gate,
  hookTable,
  type Kind,
  notify,
  type Plugin,
  registry,
  type TapsOf,
  token,
} from '../../../kernel/plugin.js'
import type { Extension } from '../../../schemas/extensions.js'
import type { Brought } from './consent/brought.js'
import type { Owner } from './consent/owner.js'
import type { DownloadReply, DownloadRules } from './downloads/rules.js'
import type { Manifest, Provision, SourceTier } from './manifest/manifest.js'

export {
  type AuthorOf,
  type CuratedArchive,
  type CuratedCatalog,
  CuratedCatalogs,
  ExtensionInstalled,
  ExtensionRemoved,
  findCurated,
  type InstallFiles,
  readArchive,
  signedExtension,
  systemFiles,
  type Tree,
  writeTree,
} from '../installer/api.js'
export {
  type Brought,
  beyond,
  broughtAgent,
  broughtHook,
  broughtServer,
  broughtSidecar,
  consentDigest,
  inOrder,
  sidecarFiles,
} from './consent/brought.js'
export { namesOf } from './consent/check.js'
export { type Consentable, consentableOf, type Grants, grantsOf } from './consent/grants.js'
export { askerOf, type Owner, ownerOf } from './consent/owner.js'
export { DownloadError, type DownloadProblem, type DownloadReply, type DownloadRules } from './downloads/rules.js'
export { ExtensionErrors, MANIFEST_ERRORS, NAMED_ERRORS } from './errors.js'
export { isLink, referenceOf } from './identity.js'
export { locationInCopy as placeInCopy } from './load/copy-path.js'
export { type LeftOut, leftOutOf } from './load/left-out.js'
export type { LogRing } from './load/log-ring.js'
export {
  askedFor,
  isAtLeast,
  isNewer,
  Manifest,
  manifestFileNames,
  ownedProvisions,
  type Provision,
  parseManifest,
  provisions,
  publishFamilies,
  RelativePath,
  readManifest,
  requirementDigest,
  type SourceTier,
  toolId,
  typeOf,
} from './manifest/manifest.js'
export { callOf, readInside, readText, resolveInside, shippedId } from './manifest/paths.js'
export { type Consent, type HostMethod, hostMethods } from './manifest/permissions.js'
export { lineNear, type Read, readLines } from './manifest/source.js'
export { secretFolders, secretReference } from './secret-path.js'
export { StateParams } from './storage/params.js'

/** Downloads an address within the limits of `rules`. @throws DownloadError */
export const download = async (url: URL, rules: DownloadRules): Promise<Buffer> =>
  (await import('./downloads/download.js')).download(url, rules)

/** Sends one request; redirects are not followed. @throws DownloadError */
export const exchange = async (url: URL, init: RequestInit, rules: DownloadRules): Promise<DownloadReply> =>
  (await import('./downloads/download.js')).exchange(url, init, rules)

/**
 * Rejects an address inside this machine or its networks, unless a person named it. @throws DownloadError `private`,
 * `unreachable`
 */
export const judgeAddress = async (
  url: URL,
  { named, lookup }: Pick<DownloadRules, 'named' | 'lookup'>,
): Promise<void> => (await import('./downloads/addresses.js')).judge(url, named, lookup)

/** Status of an extension. */
export type ExtensionStatus = 'disabled' | 'enabled' | 'registered' | 'active' | 'error'

/** An extension with a valid manifest, as other plugins see it. */
export interface InstalledExtension {
  readonly name: string
  /** Unique key: the name for the installed extension, `name@workspace` or `name@*` for a developer's link. */
  readonly key: string
  readonly version: string
  /** Absolute, symlinks resolved. */
  readonly root: string
  readonly manifest: Manifest
  readonly enabled: boolean
  readonly state: ExtensionStatus
  readonly tier: SourceTier
  /** SHA-256 of the manifest, hex. */
  readonly digest: string
  /** Id of the workspace that a link is limited to; absent: all. */
  readonly workspace?: string
  /** Only for an extension with code in the daemon: the file of its plugin, absolute, and the plugin's surface. */
  readonly code?: { readonly module: string; readonly surface: Plugin['surface'] }
}

/** An item that an extension ships. */
export interface ShippedItem {
  readonly kind: string
  readonly id: string
  readonly name: string
  /** Whether the daemon uses the item now. */
  readonly live: boolean
}

/** A record that represents an item of an extension. */
export interface ShippedRecord {
  readonly kind: Kind
  readonly id: string
  /** For people. */
  readonly name: string
  /** As written; the kind checks and canonicalizes it. */
  readonly spec: unknown
}

/** The items that a family read from one extension. They take effect when `taken` is called. */
export interface Shipment {
  /** Items without a record. */
  readonly items?: readonly ShippedItem[]
  /** Published with the source `extension/<key>`, in one transaction with those of the other families. */
  readonly records?: readonly ShippedRecord[]
  /**
   * Everything that can run, send requests or receive a secret. A person who installs an extension from a catalog
   * consents to this list, and nothing beyond it is loaded.
   */
  readonly brings: readonly Brought[]
  /** Unusable entries, each with its place and the reason; the other entries are loaded. */
  readonly leftOut?: readonly string[]
  /** Agent names that other agents already have. */
  readonly agentConflicts?: readonly string[]
  /** Names of jobs and triggers that the extension starts. */
  readonly automationStarting?: readonly string[]
  /** Called in the publishing transaction to make this shipment the current one. Must not throw. */
  readonly taken?: () => void
}

/**
 * Reads one key below `[resources]` of manifests, or `tools`, for the plugin that owns the noun. A key without a family
 * is shown as waiting for its owner.
 */
export interface ResourceFamily {
  /** Key below `[resources]`, `bundles` say, or `tools`. */
  readonly name: string
  /** Kinds of the records that the family ships. */
  readonly kinds?: readonly Kind[]
  /**
   * Reads and checks the items of this family in an extension, without side effects; called again whenever the
   * extension changes. An error sets the extension to `error` with this text; on a change, the previous items stay.
   */
  readonly load: (extension: InstalledExtension) => Awaitable<Shipment>
  /** Called when the extension of that key is unloaded or has no more items of this family. Must not throw. */
  readonly unload?: (key: string) => void
}

export const ResourceFamilies = registry<ResourceFamily>(
  'extensions.families@1',
  v.looseObject({
    name: v.string(),
    kinds: v.optional(v.array(v.looseObject({ name: v.string() }))),
    load: v.function(),
    unload: v.optional(v.function()),
  }),
)

/** Members of `runtime` that a process is started with. */
export interface ProvidedMembers {
  readonly members: Readonly<Record<string, unknown>>
  /** Values among the members that logs and errors must not show. */
  readonly secrets: readonly string[]
}

/** A call of the Host API from the process of an extension. */
export interface HostCall {
  readonly extension: InstalledExtension
  readonly params: Readonly<Record<string, unknown>>
  /** Aborts when the process is stopped. */
  readonly signal: AbortSignal
}

/** A change in the process of an extension; after `failed` it is restarted with back-off. */
export type ProcessNews =
  | { readonly status: 'ready' }
  | { readonly status: 'failed'; readonly reason: string }
  | { readonly status: 'given_up'; readonly reason: string }
  | { readonly status: 'ended' }

/** Connects a provision of processes, for example `bridge.adapter`, to the plugin that owns its subject. */
export interface ProvisionOwner {
  readonly provision: Provision
  /** Read before each start of a process. An error prevents the start and is its reason. */
  readonly runtime?: (extension: InstalledExtension) => Awaitable<ProvidedMembers>
  /**
   * Whether the process has to run; absent: always. The owner calls {@link ExtensionsApi.reconsider} when the answer
   * changes. An extension whose process is not needed is `registered`.
   */
  readonly isNeeded?: (extension: InstalledExtension) => boolean
  /**
   * Methods of the Host API that no route handles, by name. A thrown Fault is returned to the process; any other error
   * becomes an internal one.
   */
  readonly methods?: Readonly<Record<string, (call: HostCall) => Promise<unknown>>>
  /** Called after the process became ready, failed, was given up or ended. Must not throw. */
  readonly heard?: (extension: InstalledExtension, news: ProcessNews) => void
}

export const ProvisionOwners = registry<ProvisionOwner>(
  'extensions.provisions@1',
  v.looseObject({
    provision: v.string(),
    runtime: v.optional(v.function()),
    isNeeded: v.optional(v.function()),
    methods: v.optional(v.record(v.string(), v.function())),
    heard: v.optional(v.function()),
  }),
)

/** Options of a call to the process of an extension. */
export interface CallOptions {
  /** Default: 60 s. */
  readonly timeoutMs?: number
  /** Aborting it stops the wait for the answer. */
  readonly signal?: AbortSignal
  /** Values among the parameters that the log of the process must redact from now on. */
  readonly secrets?: readonly string[]
}

/** How a process for a single piece of work is started. */
export interface ControlLaunch {
  /** Replaces the result of {@link ProvisionOwner.runtime}. */
  readonly runtime: ProvidedMembers
  /** Methods of the Host API that the work handles itself, as {@link ProvisionOwner.methods}. */
  readonly methods: ReadonlyMap<string, (call: HostCall) => Promise<unknown>>
  /**
   * Methods that are handled as usual. All others are refused, and both lists are limited to the methods granted to the
   * extension.
   */
  readonly passes: readonly string[]
}

/** A process started for a single piece of work. */
export interface ControlProcess {
  implements(method: string): boolean
  /** @throws Fault `extension_method_missing`, `extension_call_failed` */
  call(method: string, params: unknown, timeoutMs: number): Promise<unknown>
}

/** The method that runs a hook in the process of an extension, for events that the process named in its handshake. */
export const HOOK_METHOD = 'hooks/execute'

/** The hooks of extensions. */
export const points = hookTable({
  changed: notify<[names: readonly string[]]>(
    'changed',
    'The set of loaded extensions, or one of them, changed, or all have been loaded since the daemon started; the names.',
  ),
  disabling: gate<[name: string]>(
    'disabling',
    'Before an installed extension is disabled or removed. A refusal is a 409 that names what depends on it.',
  ),
})

/** A key of the storage of an extension. */
export interface StoredKey {
  readonly key: string
  /** Bytes of the key and of its value as JSON. */
  readonly bytes: number
  readonly updated_at: string
}

/**
 * Storage of an extension beside its tables. It survives updates, reloads and restarts; `svc extension remove --purge`
 * deletes it. The process of the extension reads and writes the same values with `state/*`, and has the same folder.
 */
export interface ExtensionStorage {
  /** The value of a key; undefined: it has none. */
  get(key: string): Promise<unknown>
  /**
   * Stores any JSON of at most 64 KiB; resolves when it is durable.
   * @throws Fault `extension_state_invalid`, `extension_state_too_large`: all keys and values together have at most 16 MiB
   */
  put(key: string, value: unknown): Promise<void>
  /** @returns whether the key existed */
  delete(key: string): Promise<boolean>
  /** Keys in ascending order: those that begin with `prefix`, behind `after`, at most `limit` (1 to 1,000; default 200). */
  list(options?: {
    readonly prefix?: string | undefined
    readonly after?: string | undefined
    readonly limit?: number | undefined
  }): Promise<{ readonly entries: readonly StoredKey[]; readonly has_more: boolean }>
  /** Path of its folder for files, mode 0700, created if missing. Nothing watches it. */
  folder(): Promise<string>
}

export interface ExtensionsApi extends TapsOf<typeof points> {
  /** Extensions with a valid manifest, by key, loaded or not. */
  installed(): readonly InstalledExtension[]
  /** All extensions as their route lists them to a caller, once they are read. */
  shown(actor: Actor): Promise<readonly Extension[]>
  /**
   * Whether an extension of that name, or any, is installed or linked but not yet read since the daemon started: its
   * dependents wait. The hook `changed` runs when all have been read.
   */
  isLoading(name?: string): boolean
  /** The owner for things of the extension of that key, with the confinement that they run under. */
  owner(key: string): Owner
  /** Waits until all extensions have been loaded once since the daemon started, at most 5 s. */
  settled(): Promise<void>
  /**
   * Calls a service method of the process of the extension of that key, for example `tools/call`, or {@link
   * HOOK_METHOD}.
   * @throws Fault `extension_not_found`, `extension_not_running`, `extension_busy`, `extension_method_missing`: surely nothing was
   * sent; `extension_call_failed`
   */
  call(key: string, method: string, params: unknown, options?: CallOptions): Promise<unknown>
  /** Whether the process of the extension of that key runs and implements the method. */
  implements(key: string, method: string): boolean
  /**
   * Unused extensions that ship with the daemon: none of their items are loaded. {@link reconsider} loads one whose
   * process is needed, which makes it an installed extension.
   */
  bundled(): readonly InstalledExtension[]
  /**
   * Starts or stops the process of the extension of that key according to {@link ProvisionOwner.isNeeded}; does nothing
   * for an unknown key. Resolves when the process is ready or gone. @throws Fault `extension_not_running` with the
   * reason; the start is retried
   */
  reconsider(key: string): Promise<void>
  /**
   * Starts a separate process of the extension of that key for a single piece of work, and stops it before this
   * resolves. It is not supervised and does not change the state of the extension.
   * @throws Fault `extension_not_found`, `extension_not_running` with the reason why it did not start, and what the work throws
   */
  control<T>(
    key: string,
    launch: ControlLaunch,
    work: (process: ControlProcess) => Promise<T>,
    signal: AbortSignal,
  ): Promise<T>
  /** The storage of the extension of that name; a plugin requires `Storage` of `svc/plugins/storage` for its own. */
  storageOf(name: string): ExtensionStorage
  /** Restarts the process of the extension of that key with the current result of {@link ProvisionOwner.runtime}. */
  restart(key: string): Promise<void>
}

export const Extensions = token<ExtensionsApi>('extensions@1')

/** Id of the workspace of a link, empty for all; absent for an installed extension. */
const workspace = v.optional(v.string())
const named = v.object({ name: v.string(), version: v.optional(v.string()), workspace })
const failed = v.object({ name: v.string(), error: v.string(), workspace })
export const ExtensionEnabled = event('extension.enabled', named)
export const ExtensionDisabled = event('extension.disabled', named)
export const ExtensionReloaded = event('extension.reload.completed', named)
export const ExtensionReloadFailed = event('extension.reload.failed', failed)
export const ExtensionDevLinked = event('extension.dev.linked', v.object({ name: v.string(), workspace: v.string() }))
export const ExtensionDevUnlinked = event(
  'extension.dev.unlinked',
  v.object({ name: v.string(), workspace: v.string() }),
)
