import { reasonOf } from '../../../../kernel/platform.js'
import type { Fault } from '../../../../kernel/plugin.js'
import type { ExtensionRuntime } from '../../subprocess-host/api.js'
import type { InstalledExtension } from '../api.js'
import type { Found } from '../folders/catalog.js'
import type { Claim, Claimant } from '../folders/claims.js'
import type { Manifest, SourceTier } from '../manifest/manifest.js'
import { admit } from './admission.js'
import { hashTree } from './code.js'
import type { Shipped } from './families.js'
import { bringCode, type Code, standIn } from './in-process.js'
import type { InstanceHost } from './instance-host.js'
import type { LogRing } from './log-ring.js'

/** The content of a folder that may be loaded. */
export interface FolderContent {
  readonly manifest: Manifest
  readonly digest: string
  readonly root: string
}

/** A loaded generation of an extension. */
export interface Generation extends Code, FolderContent {
  readonly shipped: Shipped
  readonly runtime?: ExtensionRuntime
}

/** The extension that a loader belongs to. */
export interface Loaded extends Claimant {
  readonly tier: () => SourceTier
  readonly log: LogRing
}

/** Options of a load: the generation to replace and how. */
export interface Bringing {
  readonly before: Generation | undefined
  /** Whether unchanged parts are restarted as well. */
  readonly anew: boolean
  /** Throws the reason why a valid manifest must not be loaded. */
  readonly allow?: ((manifest: Manifest) => void) | undefined
}

export class Loader {
  constructor(
    private readonly host: InstanceHost,
    private readonly whose: Loaded,
    private readonly view: (content: Code & FolderContent) => InstalledExtension,
  ) {}

  /** @throws Fault of the manifest, or another reason that prevents a load */
  async read(found: Found): Promise<FolderContent> {
    const { name, tier } = this.whose
    const manifest = await admit(found, { name, tier: tier(), daemonVersion: this.host.daemonVersion })
    const { root, digest } = found as Exclude<Found, { fault: Fault }>
    return { manifest, digest, root }
  }

  /** The items that the folder would ship; loads nothing. */
  async plan(found: Found): Promise<Shipped> {
    return this.host.families.read(this.view(await this.read(found)))
  }

  /**
   * The order avoids partial loads: reading has no side effects, and publishing is one transaction that can be
   * reverted.
   * @throws the reason of a failed load; the previous generation is unchanged
   */
  async bring(found: Found, bringing: Bringing): Promise<Generation> {
    const { before, allow } = bringing
    const { families, claims } = this.host
    try {
      const content = await this.read(found)
      allow?.(content.manifest)
      const off = await this.#whyNot(content, before)
      const shipped = off === undefined ? await families.read(this.view(content)) : []
      await this.#publish(content, shipped)
      const code = await this.#code(content, off, bringing).catch(async error => {
        await families.publish(this.view(before ?? content), before?.shipped ?? [])
        throw error
      })
      const runtime = await this.#process(this.view({ ...content, ...code }), code.hash, off, bringing)
      claims.keep(this.whose, claimsOf(content, shipped))
      if (before) this.#giveBack(before)
      return { ...content, ...code, shipped, ...(runtime ? { runtime } : {}) }
    } catch (error) {
      claims.keep(this.whose, before ? claimsOf(before, before.shipped) : [])
      throw error
    }
  }

  /** Loads the copy of the code that started last, for a folder that does not load. */
  async bringKept(root: string): Promise<Generation | undefined> {
    const kept = await this.host.kept.read(this.whose.name, root)
    return kept && this.bring(kept, { before: undefined, anew: false }).catch(() => undefined)
  }

  /** Notes the running code as the one that started last. */
  async keep(generation: Generation): Promise<void> {
    if (generation.module && generation.waits === undefined)
      await this.host.kept.note(this.whose.name, generation, generation.manifest.version)
  }

  /**
   * The generation with newly read items; undefined if the added or removed plugin does not concern it, or if its own
   * plugin runs as before.
   */
  async refit(loaded: Generation, plugin: string): Promise<Generation | undefined> {
    const { families, dropIns } = this.host
    if (plugin === this.whose.name || plugin === loaded.plugin?.replaces) return this.#follow(loaded)
    if (dropIns.whyNot(this.whose.name) !== undefined || !families.concerns(plugin, loaded, loaded.shipped)) {
      return undefined
    }
    const shipped = await families.read(this.view(loaded))
    await this.#publish(loaded, shipped)
    return { ...loaded, shipped }
  }

  /** The generation after its code began or stopped waiting for another plugin; undefined if unchanged. */
  #follow(loaded: Generation): Generation | undefined {
    const { dropIns, stateOf } = this.host
    const state = loaded.plugin && stateOf(this.whose.name)
    if (!state || dropIns.whyNot(this.whose.name) !== undefined) return undefined
    const { waits: before, ...rest } = loaded
    const waits = reasonOf(state)
    if (waits === (before ?? '')) return undefined
    return waits === '' ? rest : { ...rest, waits }
  }

  /** Stops all parts, even if one fails to stop; returns the last such error. */
  async release(generation: Generation): Promise<unknown> {
    const { families, dropIns, claims } = this.host
    const { runtime, plugin } = generation
    let problem: unknown
    const parts = [
      () => runtime?.stop(),
      // Before its records are deleted, because guards of its own could refuse that.
      () => (plugin ? dropIns.remove(this.whose.name) : undefined),
      () => families.withdraw(this.whose),
    ]
    for (const end of parts) {
      try {
        await end()
      } catch (error) {
        problem = error
      }
    }
    this.#giveBack(generation)
    claims.keep(this.whose, [])
    return problem
  }

  /** Stops code that the boot started for an extension that then failed to load; returns the error of a failed stop. */
  async releaseBegun(): Promise<unknown> {
    const { dropIns, bootCodeOf } = this.host
    return bootCodeOf(this.whose) && dropIns.remove(this.whose.name).catch(error => error)
  }

  /**
   * Why nothing of the extension may run. Code that was excluded because it blocked the daemon is retried once it has
   * changed.
   */
  async #whyNot({ root }: FolderContent, before: Generation | undefined): Promise<string | undefined> {
    const { dropIns, kept } = this.host
    const { name } = this.whose
    const suspect = before?.hash ?? kept.get(name)?.hash
    if (dropIns.isLeftOut(name) && suspect && (await hashTree(root)) !== suspect) dropIns.retry(name)
    return dropIns.whyNot(name)
  }

  async #publish(content: FolderContent, shipped: Shipped): Promise<void> {
    await this.host.claims.take(this.whose, claimsOf(content, shipped))
    await this.host.families.publish(this.view(content), shipped)
  }

  async #code(content: FolderContent, off: string | undefined, { before, anew }: Bringing): Promise<Code> {
    const { manifest, root } = content
    const { dropIns } = this.host
    if (manifest.main === undefined || off !== undefined) {
      if (before?.plugin) await dropIns.remove(this.whose.name)
      return {
        ...(manifest.subprocess || off !== undefined ? { hash: await hashTree(root) } : {}),
        ...(manifest.main === undefined ? {} : await standIn(dropIns, manifest)),
        ...(off === undefined ? {} : { waits: off }),
      }
    }
    const known = before?.waits === undefined && !anew ? before : undefined
    return bringCode(this.host, manifest, root, { before, known, anew, whose: this.whose })
  }

  async #process(
    extension: InstalledExtension,
    hash: string | undefined,
    off: string | undefined,
    { before, anew }: Bringing,
  ): Promise<ExtensionRuntime | undefined> {
    const wanted = extension.manifest.subprocess && off === undefined
    const same = before?.hash === hash && before?.digest === extension.digest && !anew
    if (before?.runtime && same && wanted) return before.runtime
    const runtime = wanted ? this.host.runtime(extension, this.whose.log) : undefined
    await before?.runtime?.stop()
    await this.host.families.retract(extension)
    return runtime
  }

  #giveBack({ module, hash }: Code): void {
    if (module && hash) this.host.code.release(hash)
  }
}

/** Claims of an extension: resources that only one instance can hold. */
function claimsOf({ manifest }: FolderContent, shipped: Shipped): Claim[] {
  const records = shipped.flatMap(({ shipment }) => shipment.records ?? [])
  const code = manifest.main === undefined ? [] : [{ id: 'main', what: 'code in the daemon' }]
  const named = records.map(({ kind, id, name }) => ({ id: `${kind.name}/${id}`, what: `${kind.name} ${name}` }))
  return [...code, ...named]
}

export const sameGeneration = (a: Generation, b: Generation): boolean =>
  a.digest === b.digest && a.hash === b.hash && a.plugin === b.plugin && a.runtime === b.runtime
