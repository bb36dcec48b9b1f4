import * as v from 'valibot'
import {
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
import type { Brought } from './consent/brought.js'
import type { Owner } from './consent/owner.js'
import type { DownloadReply, DownloadRules } from './downloads/rules.js'
import type { Tree } from './install/source/tree.js'
import type { Manifest, Provision, SourceTier } from './manifest/manifest.js'

export {
  type Brought,
  broughtAgent,
  broughtHook,
  broughtServer,
  broughtSidecar,
  sidecarFiles,
} from './consent/brought.js'
export { askerOf, type Owner, ownerOf } from './consent/owner.js'
export { DownloadError, type DownloadProblem, type DownloadReply, type DownloadRules } from './downloads/rules.js'
export { ExtensionErrors } from './errors.js'
export { placeInCopy } from './load/copy-path.js'
export {
  isAtLeast,
  isNewer,
  Manifest,
  manifestFileNames,
  type Provision,
  parseManifest,
  publishFamilies,
  RelativePath,
  readManifest,
  requirementDigest,
  type SourceTier,
  toolId,
} from './manifest/manifest.js'
export { callOf, readInside, readText, resolveInside, shippedId } from './manifest/paths.js'
export { lineNear, type Read, readLines } from './manifest/source.js'

/** The bytes behind an address, held to rules. @throws DownloadError */
export const download = async (url: URL, rules: DownloadRules): Promise<Buffer> =>
  (await import('./downloads/download.js')).download(url, rules)

/** One request and its answer, which is followed nowhere. @throws DownloadError */
export const exchange = async (url: URL, init: RequestInit, rules: DownloadRules): Promise<DownloadReply> =>
  (await import('./downloads/download.js')).exchange(url, init, rules)

/** Refuses an address inside of this machine or its networks that nobody named. @throws DownloadError `private`, `unreachable` */
export const judgeAddress = async (
  url: URL,
  { named, lookup }: Pick<DownloadRules, 'named' | 'lookup'>,
): Promise<void> => (await import('./downloads/addresses.js')).judge(url, named, lookup)

/** Status of an extension. */
export type ExtensionStatus = 'disabled' | 'enabled' | 'registered' | 'active' | 'error'

/** An extension whose manifest is valid, as others see it. */
export interface InstalledExtension {
  readonly name: string
  /** What tells it from others of its name, which a developer has linked: the name alone is what is installed. */
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
  /** Id of the workspace that it was linked to and counts in; absent: everywhere. */
  readonly workspace?: string
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

/** A record that tells of something that an extension ships. */
export interface ShippedRecord {
  readonly kind: Kind
  readonly id: string
  /** For people. */
  readonly name: string
  /** As it is written; the kind checks it and makes it canonical. */
  readonly spec: unknown
}

/** What a family read of one extension; nothing of it counts before it is taken. */
export interface Shipment {
  /** What has no record of its own. */
  readonly items?: readonly ShippedItem[]
  /** Published with the source `extension/<key>`, in one transaction with those of the other families. */
  readonly records?: readonly ShippedRecord[]
  /**
   * Everything of it that can run, send requests or be given a secret. A person who installs an extension from a catalog
   * consents to this list, and nothing beyond it is loaded.
   */
  readonly brings: readonly Brought[]
  /** Entries that cannot be used, each with its place and why; the others count. */
  readonly leftOut?: readonly string[]
  /** Names of agents that others have already. */
  readonly agentConflicts?: readonly string[]
  /** Names of jobs and triggers that begin to run with it. */
  readonly automationStarting?: readonly string[]
  /** Called in that transaction: from now on this is what the extension has. Must not throw. */
  readonly taken?: () => void
}

/**
 * Reads one key below `[resources]` of manifests, or `tools`, on behalf of the plugin that has the noun. What no family reads is
 * shown as waiting for its owner.
 */
export interface ResourceFamily {
  /** Key below `[resources]`, `bundles` say, or `tools`. */
  readonly name: string
  /** Of the records that it ships. */
  readonly kinds?: readonly Kind[]
  /**
   * Reads and checks what an extension has of this family, and changes nothing; called again whenever the extension changes. A
   * throw makes the extension `error` with this text; at a change it stays as it was.
   */
  readonly load: (extension: InstalledExtension) => Awaitable<Shipment>
  /** The extension of that key is loaded no longer, or has nothing of this family now. Must not throw. */
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
  /** Values in them that are never shown, in a log or an error. */
  readonly secrets: readonly string[]
}

/** A call of the Host API by the process of an extension. */
export interface HostCall {
  readonly extension: InstalledExtension
  readonly params: Readonly<Record<string, unknown>>
  /** Aborts when the process is being ended. */
  readonly signal: AbortSignal
}

/** What happened to the process of an extension; `failed`: it is started again after a while. */
export type ProcessNews =
  | { readonly status: 'ready' }
  | { readonly status: 'failed'; readonly reason: string }
  | { readonly status: 'given_up'; readonly reason: string }
  | { readonly status: 'ended' }

/** Joins a provision of processes, `bridge.adapter` for example, to the plugin that owns its subject. */
export interface ProvisionOwner {
  readonly provision: Provision
  /** Read anew before each start of a process. What it throws is the reason why the process does not start. */
  readonly runtime?: (extension: InstalledExtension) => Awaitable<ProvidedMembers>
  /**
   * Whether the process has to run now; absent: always. {@link ExtensionsApi.reconsider} says that the answer may be another one.
   * An extension whose process is not needed is `registered`.
   */
  readonly isNeeded?: (extension: InstalledExtension) => boolean
  /** Methods of the Host API that no route answers, by name. A fault is the answer; any other error is an internal one. */
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

/** How the process of an extension is called. */
export interface CallOptions {
  /** Default: 60 s. */
  readonly timeoutMs?: number
  /** Aborted: the answer is waited for no longer. */
  readonly signal?: AbortSignal
  /** Values among the parameters that its log must not show from now on. */
  readonly secrets?: readonly string[]
}

/** How a process is started for some work alone. */
export interface ControlLaunch {
  /** In place of what {@link ProvisionOwner.runtime} says. */
  readonly runtime: ProvidedMembers
  /** Methods of the Host API that the work answers itself, as {@link ProvisionOwner.methods}. */
  readonly methods: ReadonlyMap<string, (call: HostCall) => Promise<unknown>>
  /** Methods that are answered as ever. No others may be called, and of both lists only those that the extension is granted. */
  readonly passes: readonly string[]
}

/** A process that was started for some work alone. */
export interface ControlProcess {
  implements(method: string): boolean
  /** @throws Fault `extension_method_missing`, `extension_call_failed` */
  call(method: string, params: unknown, timeoutMs: number): Promise<unknown>
}

/** The method by which the process of an extension is asked when a hook of it runs, for events that it named in its handshake. */
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
 * What an extension keeps beside its tables. It lasts over updates, reloads and restarts, and goes with `svc extension remove --purge`. Its
 * process has the same values by `state/*`, and the same folder.
 */
export interface ExtensionStorage {
  /** The value of a key; undefined: it has none. */
  get(key: string): Promise<unknown>
  /**
   * Stores any JSON of at most 64 KiB; resolves when it is on the disk.
   * @throws Fault `extension_state_invalid`, `extension_state_too_large`: all keys and values together have at most 16 MiB
   */
  put(key: string, value: unknown): Promise<void>
  /** @returns whether there was one */
  delete(key: string): Promise<boolean>
  /** Keys in ascending order: those that begin with `prefix`, behind `after`, at most `limit` (1 to 1,000; default 200). */
  list(options?: {
    readonly prefix?: string
    readonly after?: string
    readonly limit?: number
  }): Promise<{ readonly entries: readonly StoredKey[]; readonly has_more: boolean }>
  /** Path of its folder for files, mode 0700, made when it is not there. Nothing watches it. */
  folder(): Promise<string>
}

export interface ExtensionsApi extends TapsOf<typeof points> {
  /** Those with a valid manifest, by key, whether loaded or not. */
  installed(): readonly InstalledExtension[]
  /**
   * Whether an extension of that name, or any, is installed or linked, and has not been looked at since the daemon started: what
   * depends on it waits. `changed` is told when all have been.
   */
  isLoading(name?: string): boolean
  /** Whose things of the extension of that key are, and how they run. */
  owner(key: string): Owner
  /** Waits until all extensions have been loaded once since the daemon started, 5 s at most. */
  settled(): Promise<void>
  /**
   * Calls a service method of the process of the extension of that key, `tools/call` say, or {@link HOOK_METHOD}.
   * @throws Fault `extension_not_found`, `extension_not_running`, `extension_busy`, `extension_method_missing`: surely nothing was
   * sent; `extension_call_failed`
   */
  call(key: string, method: string, params: unknown, options?: CallOptions): Promise<unknown>
  /** Whether the process of the extension of that key runs and implements the method. */
  implements(key: string, method: string): boolean
  /**
   * Extensions that come with the daemon and are not used: nothing of them is loaded. {@link reconsider} loads one whose process is
   * needed; from then on it is among those that are installed.
   */
  bundled(): readonly InstalledExtension[]
  /**
   * Starts or ends the process of the extension of that key, as {@link ProvisionOwner.isNeeded} says now; nothing where there is none.
   * Resolves when it is ready or gone. @throws Fault `extension_not_running` with the reason why it is not ready; it is tried again
   */
  reconsider(key: string): Promise<void>
  /**
   * Starts another process of the extension of that key for some work alone, beside the one that runs or in place of none, and ends it
   * before this resolves. It is not supervised, and nothing that it does counts as the extension's.
   * @throws Fault `extension_not_found`, `extension_not_running` with the reason why it did not start, and what the work throws
   */
  control<T>(
    key: string,
    launch: ControlLaunch,
    work: (process: ControlProcess) => Promise<T>,
    signal: AbortSignal,
  ): Promise<T>
  /** What the extension of that name keeps; a plugin requires `Storage` of `svc/plugins/storage` for its own. */
  storageOf(name: string): ExtensionStorage
  /** Ends the process of the extension of that key and starts another one with what {@link ProvisionOwner.runtime} says now. */
  restart(key: string): Promise<void>
}

export const Extensions = token<ExtensionsApi>('extensions@1')

/** Id of the workspace of a link, empty for all; absent of what is installed. */
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

export { ExtensionInstalled, ExtensionRemoved } from './install/events.js'
export { type Files as InstallFiles, systemFiles, writeTree } from './install/files.js'
export * from './install/source/curated.js'
export type { Tree }

/**
 * The files of a `.tar.gz`, unpacked in memory and judged whole: what leads out, links and what unpacks to more than it may is
 * refused. @throws Fault `extension_content_refused`
 */
export async function readArchive(bytes: Uint8Array, isRoot: (path: string) => boolean): Promise<Tree> {
  // Loaded when there is an archive: a start has no use for it.
  return (await import('./install/source/archive.js')).readArchive(bytes, isRoot)
}
