import { reasonOf } from '../../../../kernel/platform.js'
import type { Fault } from '../../../../kernel/plugin.js'
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
import type { ExtensionRuntime } from './runtime.js'

/** What was found in a folder, and may be loaded. */
export interface Seen {
  readonly manifest: Manifest
  readonly digest: string
  readonly root: string
}

/** What of an extension is loaded. */
export interface Generation extends Code, Seen {
  readonly shipped: Shipped
  readonly runtime?: ExtensionRuntime
}

/** Whose folder it is. */
export interface Loaded extends Claimant {
  readonly tier: () => SourceTier
  readonly log: LogRing
}

/** How a generation of an extension comes, in the place of the one before where there is one, and how it goes. */
export interface Bringing {
  readonly before: Generation | undefined
  /** Also what did not change is started again. */
  readonly anew: boolean
  /** Throws why that may not be loaded, though it is valid. */
  readonly allow?: ((manifest: Manifest) => void) | undefined
}

export class Loader {
  constructor(
    private readonly host: InstanceHost,
    private readonly whose: Loaded,
    private readonly view: (seen: Code & Seen) => InstalledExtension,
  ) {}

  /** @throws Fault of the manifest, or what else keeps it from being loaded */
  async read(found: Found): Promise<Seen> {
    const { name, tier } = this.whose
    const manifest = await admit(found, { name, tier: tier(), daemonVersion: this.host.daemonVersion })
    const { root, digest } = found as Exclude<Found, { fault: Fault }>
    return { manifest, digest, root }
  }

  /** What it would ship; loads nothing. */
  async plan(found: Found): Promise<Shipped> {
    return this.host.families.read(this.view(await this.read(found)))
  }

  /**
   * In this order nothing is half: what is read changes nothing, what is published is one transaction and can be taken back.
   * @throws why it is not loaded; what was before is as it was
   */
  async bring(found: Found, bringing: Bringing): Promise<Generation> {
    const { before, allow } = bringing
    const { families, claims } = this.host
    try {
      const seen = await this.read(found)
      allow?.(seen.manifest)
      const off = await this.#whyNot(seen, before)
      const shipped = off === undefined ? await families.read(this.view(seen)) : []
      await this.#publish(seen, shipped)
      const code = await this.#code(seen, off, bringing).catch(async error => {
        await families.publish(this.view(before ?? seen), before?.shipped ?? [])
        throw error
      })
      const runtime = await this.#process(this.view({ ...seen, ...code }), code.hash, off, bringing)
      claims.keep(this.whose, claimsOf(seen, shipped))
      if (before) this.#giveBack(before)
      return { ...seen, ...code, shipped, ...(runtime ? { runtime } : {}) }
    } catch (error) {
      claims.keep(this.whose, before ? claimsOf(before, before.shipped) : [])
      throw error
    }
  }

  /** The code that started last, from its copy, when what is in the folder does not load. */
  async bringKept(root: string): Promise<Generation | undefined> {
    const kept = await this.host.kept.read(this.whose.name, root)
    return kept && this.bring(kept, { before: undefined, anew: false }).catch(() => undefined)
  }

  /** What runs is the code that started last. */
  async keep(generation: Generation): Promise<void> {
    if (generation.module && generation.waits === undefined)
      await this.host.kept.note(this.whose.name, generation, generation.manifest.version)
  }

  /** It with what its families read now; undefined when the plugin that came or went has nothing to do with it, or is its own and runs as before. */
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

  /** Its code began to wait for another plugin, or does so no longer. */
  #follow(loaded: Generation): Generation | undefined {
    const { dropIns, stateOf } = this.host
    const state = loaded.plugin && stateOf(this.whose.name)
    if (!state || dropIns.whyNot(this.whose.name) !== undefined) return undefined
    const { waits: before, ...rest } = loaded
    const waits = reasonOf(state)
    if (waits === (before ?? '')) return undefined
    return waits === '' ? rest : { ...rest, waits }
  }

  /** Ends all of it, also where a part does not end; why the last such one does not. */
  async release(generation: Generation): Promise<unknown> {
    const { families, dropIns, claims } = this.host
    const { runtime, plugin } = generation
    let problem: unknown
    const parts = [
      () => runtime?.stop(),
      // Before its records are deleted, which its own guards could refuse.
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

  /** Ends code that the boot started for one that did not load afterwards; why it does not end. */
  async releaseBegun(): Promise<unknown> {
    const { dropIns, begun } = this.host
    return begun(this.whose) && dropIns.remove(this.whose.name).catch(error => error)
  }

  /** Why nothing of it is to run. Code that was left out, because it held the daemon, is tried again once it is other code. */
  async #whyNot({ root }: Seen, before: Generation | undefined): Promise<string | undefined> {
    const { dropIns, kept } = this.host
    const { name } = this.whose
    const suspect = before?.hash ?? kept.get(name)?.hash
    if (dropIns.isLeftOut(name) && suspect && (await hashTree(root)) !== suspect) dropIns.retry(name)
    return dropIns.whyNot(name)
  }

  async #publish(seen: Seen, shipped: Shipped): Promise<void> {
    await this.host.claims.take(this.whose, claimsOf(seen, shipped))
    await this.host.families.publish(this.view(seen), shipped)
  }

  async #code(seen: Seen, off: string | undefined, { before, anew }: Bringing): Promise<Code> {
    const { manifest, root } = seen
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

/** What of it there can be only once. */
function claimsOf({ manifest }: Seen, shipped: Shipped): Claim[] {
  const records = shipped.flatMap(({ shipment }) => shipment.records ?? [])
  const code = manifest.main === undefined ? [] : [{ id: 'main', what: 'code in the daemon' }]
  const named = records.map(({ kind, id, name }) => ({ id: `${kind.name}/${id}`, what: `${kind.name} ${name}` }))
  return [...code, ...named]
}

export const sameGeneration = (a: Generation, b: Generation): boolean =>
  a.digest === b.digest && a.hash === b.hash && a.plugin === b.plugin && a.runtime === b.runtime
