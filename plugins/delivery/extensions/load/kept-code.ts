import { messageOf, type Plugin, type PluginKernel, type Tx } from '../../../../kernel/plugin.js'
import type { Catalog, Found } from '../folders/catalog.js'
import { type Started, started, startedVersions } from '../tables.js'
import { type CodeCache, hashTree } from './code.js'
import type { Code } from './in-process.js'

/**
 * The code that started last, for each installed extension. Its copy is kept until other code of the extension has
 * started, and runs while the folder does not load, also after a restart.
 */
export class KeptCode {
  constructor(
    private readonly kernel: Pick<PluginKernel, 'db' | 'log'>,
    private readonly code: CodeCache,
    private readonly catalog: Pick<Catalog, 'read'>,
  ) {}

  /** Holds the copies of an earlier daemon; call it before the first sweep. */
  start(): void {
    for (const { hash } of started.query(this.kernel.db, "WHERE hash <> ''")) this.code.keep(hash)
  }

  get(name: string): Started | undefined {
    const { db } = this.kernel
    const row = started.get(db, { name })
    const version = startedVersions.get(db, { name })?.version
    return row && { ...row, ...(version !== undefined && { version }) }
  }

  /** Kinds of this surface and of earlier code. */
  kindsOf(name: string, surface: Plugin['surface'] | undefined): string[] {
    const now = (surface?.kinds ?? []).map(kind => kind.name)
    return [...new Set([...(this.get(name)?.kinds ?? []), ...now])].sort()
  }

  /** Stores the started code. If the home cannot be written, the earlier one stays. */
  async note(name: string, { hash, plugin }: Code, version: string): Promise<void> {
    if (hash === undefined || !plugin) return
    const before = this.get(name)
    const kinds = this.kindsOf(name, plugin.surface)
    if (before?.hash === hash && before.kinds.length === kinds.length && before.version === version) return
    try {
      await this.kernel.db.tx(t => {
        started.replace(t, { name, hash, kinds })
        startedVersions.replace(t, { name, version })
      })
    } catch (error) {
      this.kernel.log.warn(`the code of ${name} that runs is not kept: ${messageOf(error)}`, { extension: name })
      return
    }
    if (before?.hash === hash) return
    this.code.keep(hash)
    if (before?.hash) this.code.release(before.hash)
  }

  /** The copy, if it is intact and differs from the folder. */
  async read(name: string, root: string): Promise<Found | undefined> {
    const { hash } = this.get(name) ?? {}
    if (!hash) return undefined
    const folder = this.code.folderOf(hash, name)
    if (folder === undefined) return undefined
    const [copy, current] = await Promise.all([folder, root].map(at => hashTree(at).catch(() => undefined)))
    return copy === hash && current !== hash ? this.catalog.read(folder) : undefined
  }

  /** Called when the folder was removed, by any means. */
  async gone(name: string): Promise<void> {
    if (!this.get(name)?.hash) return
    await this.kernel.db
      .tx(t => this.forget(t, name, false))
      .catch(error => this.kernel.log.warn(`${name} is not forgotten: ${messageOf(error)}`, { extension: name }))
  }

  /** Forgets a removed extension; its kinds are kept until it is purged. */
  forget(t: Tx, name: string, purge: boolean): void {
    const before = this.get(name)
    if (!before) return
    started.update(t, { name }, { hash: '' })
    if (purge) for (const table of [started, startedVersions]) table.delete(t, { name })
    if (before.hash) this.code.release(before.hash)
  }
}
