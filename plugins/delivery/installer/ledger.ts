import path from 'node:path'
import { command } from '../../../kernel/kit/commands/command-line.js'
import { type Actor, type Fault, messageOf } from '../../../kernel/plugin.js'
import type { InstallTarget } from './api.js'
import { InstallErrors } from './errors.js'
import { ExtensionInstalled, ExtensionRemoved, ExtensionUpdated } from './events.js'
import { type Files, isThere, namesIn } from './files.js'
import { type Intent, intents, type Phase, phaseOf, type Sight, transitions } from './intents.js'
import type { K } from './needs.js'
import { installs } from './provenance.js'

/** Folder of the extensions below the home, and its staging folder: both on one file system, so that renames are atomic. */
const FOLDER = 'extensions'
const STAGING = '.staging'

/**
 * Changes extension folders crash-safely: staged files first, then an intent, then one rename, then the tables. A crash
 * leaves the old folder or the new one; the next start rolls decided changes forward and removes undecided files.
 */
export class Ledger {
  readonly staging: string
  readonly #root: string

  constructor(
    private readonly kernel: K,
    private readonly files: Files,
    private readonly options: Partial<InstallTarget>,
  ) {
    this.#root = kernel.home.path(FOLDER)
    this.staging = kernel.home.path(FOLDER, STAGING)
  }

  /** The unsettled intent of that name. */
  pending(name: string): Intent | undefined {
    return intents.get(this.kernel.db, { name })?.intent
  }

  #unsettled(): Intent[] {
    return intents.all(this.kernel.db, {}, 'ORDER BY name').map(({ intent }) => intent)
  }

  /** Folder of the extension of that name. */
  folderOf(name: string): string {
    return path.join(this.#root, name)
  }

  /**
   * Rolls intents of an earlier daemon forward and removes undecided files; runs before anything is loaded. {@link conclude}
   * finishes an update with all files in place.
   */
  async start(): Promise<void> {
    for (const folder of [this.#root, this.staging]) {
      if (!(await isThere(folder))) await this.files.makeFolder(folder)
    }
    for (const intent of this.#unsettled()) {
      await this.#carryOut(intent, this.kernel.actor, false).catch(error => this.#notCarriedOn(intent, error))
    }
    const kept = new Set(this.#unsettled().map(intent => intent.id))
    for (const name of await namesIn(this.staging)) {
      if (!kept.has(name)) await this.files.remove(path.join(this.staging, name))
    }
  }

  /**
   * Finishes updates that a crash interrupted, once the installed extensions are loaded: kept, or reverted. @returns
   * their names
   */
  async conclude(): Promise<string[]> {
    const left = this.#unsettled()
    for (const intent of left)
      await this.#carryOut(intent, this.kernel.actor).catch(error => this.#notCarriedOn(intent, error))
    return left.map(({ name }) => name)
  }

  #notCarriedOn({ op, name }: Intent, error: unknown): void {
    this.kernel.log.error(`${op} of extension ${name} cannot be continued: ${messageOf(error)}`)
  }

  /**
   * Stages files, writes the intent and carries it out.
   * @param stage writes all files of the intent into a new folder
   * @throws Fault `extension_installed` if a person created the folder by hand in between, `extension_update_failed`
   */
  async decide(decided: Intent, actor: Actor, stage: (folder: string) => Promise<void>): Promise<void> {
    const kinds = this.options.kinds?.(decided.name) ?? []
    const intent: Intent = decided.op === 'remove' ? { ...decided, kinds } : decided
    const left = this.pending(intent.name)
    if (left !== undefined) await this.#carryOut(left, actor)
    const folder = path.join(this.staging, intent.id)
    try {
      await this.files.makeFolder(folder)
      await stage(folder)
      await this.files.syncFolder(folder)
      await this.files.syncFolder(this.staging)
      await this.kernel.db.tx(t => intents.insert(t, { name: intent.name, id: intent.id, intent }))
    } catch (error) {
      await this.files.remove(folder)
      throw error
    }
    if ((await this.#carryOut(intent, actor)) === 'superseded')
      throw InstallErrors.extension_installed(`${this.folderOf(intent.name)} was changed by hand meanwhile; check it`)
  }

  /**
   * Continues an intent from its current phase, the same way after a crash as without one; returns the final phase.
   * @param mayTry whether new files can be loaded now
   * @throws Fault `extension_update_failed` if they did not start and the old ones are back
   */
  async #carryOut(intent: Intent, actor: Actor, mayTry = true): Promise<Phase> {
    let refusal: Fault | undefined
    const target = this.folderOf(intent.name)
    const steps = {
      moveAside: () => this.#rename(intent, target, this.#aside(intent)),
      moveIn: () => this.#rename(intent, this.#fresh(intent), target),
      tryOut: async () => {
        refusal = await this.#refusalOf(intent)
        if (refusal) await this.#rename(intent, target, this.#refused(intent))
        else await this.#settle(intent, actor)
      },
      moveBack: () => this.#rename(intent, this.#aside(intent), target),
      settle: () => this.#settle(intent, actor),
      drop: () => this.#drop(intent),
    }
    for (;;) {
      const sight = await this.#inspect(intent)
      const phase = phaseOf(intent, sight)
      if (phase === 'placed' && sight.aside && !mayTry && this.options.tryOut) return phase
      const { step, next } = transitions[phase]
      await steps[step]().catch(async error => {
        await this.#undo(intent)
        throw error
      })
      if (next[intent.op] !== undefined || (phase === 'placed' && refusal)) continue
      await this.files.remove(path.join(this.staging, intent.id))
      if (refusal) throw refusal
      return phase
    }
  }

  /** Why the new files of an update do not start; a new installation stays even if it does not start. */
  async #refusalOf(intent: Intent): Promise<Fault | undefined> {
    if (intent.op !== 'place' || !(await isThere(this.#aside(intent)))) return undefined
    const { name, provenance, ran } = intent
    const why = await this.options.tryOut?.(name, ran)
    if (!why) return undefined
    const previous = installs.get(this.kernel.db, { name })?.provenance.version ?? 'the earlier version'
    const stays = previous === provenance.version ? 'the installed files stay' : `${previous} stays installed`
    const text = `${name} ${provenance.version} did not start, ${stays}: ${why.message}`
    return InstallErrors.extension_update_failed(text, {
      next: why.next ?? command('extension logs', name),
      cause: why,
    })
  }

  async #inspect(intent: Intent): Promise<Sight> {
    const paths = [this.#fresh(intent), this.folderOf(intent.name), this.#aside(intent), this.#refused(intent)]
    const [fresh = false, target = false, aside = false, refused = false] = await Promise.all(paths.map(isThere))
    return { fresh, target, aside, refused }
  }

  async #rename(intent: Intent, from: string, to: string): Promise<void> {
    await this.files.rename(from, to)
    await this.files.syncFolder(this.#root)
    await this.files.syncFolder(path.join(this.staging, intent.id))
  }

  /** Restores the old files after a failed rename; if that fails too, the next start continues. */
  async #undo(intent: Intent): Promise<void> {
    const { fresh, target, aside } = await this.#inspect(intent)
    const isIn = intent.op === 'place' && !fresh
    if (isIn || (intent.op === 'remove' && !target)) return
    if (aside && !target) await this.#rename(intent, this.#aside(intent), this.folderOf(intent.name))
    await this.#drop(intent)
    await this.files.remove(path.join(this.staging, intent.id))
  }

  async #drop(intent: Intent): Promise<void> {
    await this.kernel.db.tx(t => intents.delete(t, { name: intent.name }))
  }

  async #settle(intent: Intent, actor: Actor): Promise<void> {
    const {
      db,
      needs: { events },
    } = this.kernel
    const { name } = intent
    const options = { actor, subject: name }
    if (intent.op === 'remove') {
      if (intent.purge) await this.options.purge?.(name)
      await db.tx(t => {
        intents.delete(t, { name })
        installs.delete(t, { name })
        this.options.forget?.(t, name, intent.purge, intent.kinds ?? [])
        events.emit(t, ExtensionRemoved, { name, purged: intent.purge }, options)
      })
      return
    }
    const { provenance, replaces } = intent
    const { version, treeDigest: digest, source } = provenance
    await db.tx(t => {
      const previous = installs.get(t, { name })?.provenance
      intents.delete(t, { name })
      installs.replace(t, { name, provenance })
      const placed = { name, version, digest, installed_from: source.kind }
      if (!replaces || !previous) events.emit(t, ExtensionInstalled, placed, options)
      else events.emit(t, ExtensionUpdated, { ...placed, previous_version: previous.version }, options)
    })
  }

  #fresh({ id }: Intent): string {
    return freshIn(path.join(this.staging, id))
  }

  #aside({ id }: Intent): string {
    return path.join(this.staging, id, 'old')
  }

  #refused({ id }: Intent): string {
    return path.join(this.staging, id, 'refused')
  }
}

/** Folder of the new files of an intent. */
export function freshIn(folder: string): string {
  return path.join(folder, 'new')
}
