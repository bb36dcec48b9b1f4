import { lstatSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import path from 'node:path'
import { type Clock, messageOf, turn } from '../../../../kernel/plugin.js'
import { DefinitionError } from './definition.js'
import {
  type AgentFolder,
  definitionFile,
  type Found,
  isNear,
  type Reading,
  readDefinition,
  stampNow,
  stampOf,
} from './files.js'
import type { Broken, Source } from './view.js'

/** Maximum definitions of one folder; further ones are reported as a problem of the folder. */
const MAX_NAMES = 20_000
/** Files that a request checks itself. */
const CHECKED_AT_ONCE = 128
/**
 * Minimum milliseconds between two checks of all files in a larger folder, and the factor by which the pause exceeds
 * the duration of a check.
 */
const SWEEP_EVERY_MS = 2000
const SWEEP_SHARE = 20
/** Files that are read concurrently. */
const PARALLEL = 8
/** Reads after which one of these waits for the next turn of the event loop: unchanged files of the home are read at once. */
const READS_PER_TURN = 32

/**
 * The definitions of one folder, cached in memory and compared with the files on demand; nothing is watched, so an idle
 * daemon does no work. New and removed names are always seen. Changed files are seen by the next request in a folder of
 * up to {@link CHECKED_AT_ONCE} definitions; in a larger one that request starts a check in the background, at most one
 * each {@link SWEEP_EVERY_MS} and a twentieth of the time. {@link read} of one name is always exact.
 */
export class FolderIndex implements Source {
  readonly #readings = new Map<string, Reading>()
  /** Number of the last stored check by name: results of earlier checks that arrive later are outdated. */
  readonly #kept = new Map<string, number>()
  #looks = 0
  #fault: Found | undefined
  #names: readonly string[] = []
  #folderStamp = ''
  #sweepFrom = Number.NEGATIVE_INFINITY
  #running: Promise<void> | undefined
  #next: Promise<void> | undefined
  #sweep: Promise<void> | undefined
  #version = 0

  /**
   * @param isLocal whether a synchronous look at an entry of a folder does not wait for a network
   * @param invalid called once for every invalid version of a file
   */
  constructor(
    readonly where: AgentFolder,
    private readonly clock: Clock,
    private readonly signal: AbortSignal,
    private readonly isLocal: (folder: string) => boolean,
    private readonly invalid: (found: Broken) => void,
  ) {}

  /** Changes with every change of the results. */
  get version(): number {
    return this.#version
  }

  /** All current results, unordered. */
  *found(): Iterable<Found> {
    if (this.#fault) yield this.#fault
    for (const { found } of this.#readings.values()) yield found
  }

  /** The current definition of one name; undefined if there is none. */
  async read(name: string): Promise<Found | undefined> {
    const pass = ++this.#looks
    const reading = await readDefinition(this.where, name, this.#readings.get(name), this.clock.now())
    if (pass > (this.#kept.get(name) ?? 0)) this.#keep(name, pass, reading)
    return reading?.found
  }

  /** Compares with the folder. Concurrent calls share one check, which begins after them. */
  refresh(): Promise<void> {
    if (!this.#running) {
      this.#running = this.#refresh().finally(() => {
        this.#running = undefined
      })
      return this.#running
    }
    this.#next ??= this.#running.then(() => {
      this.#next = undefined
      return this.refresh()
    })
    return this.#next
  }

  /** Resolves when no background read is running. */
  async idle(): Promise<void> {
    await Promise.all([this.#running, this.#sweep])
  }

  async #refresh(): Promise<void> {
    const added = await this.#lookAtNames()
    if (added.length > 0) await this.#readAll(added)
    if (this.#names.length <= CHECKED_AT_ONCE) return this.#readAll(this.#names)
    const began = this.clock.monotonic()
    if (this.#sweep || began < this.#sweepFrom) return
    this.#sweep = this.#readAll(this.#names).finally(() => {
      const ended = this.clock.monotonic()
      this.#sweepFrom = ended + Math.max(SWEEP_EVERY_MS, SWEEP_SHARE * (ended - began))
      this.#sweep = undefined
    })
  }

  /** Returns new names; forgets removed ones. */
  async #lookAtNames(): Promise<readonly string[]> {
    try {
      if (this.#isWithoutFolder()) return this.#setNone(undefined)
      const stamp = await stampOf(this.where.folder, this.clock.now(), isNear(this.where))
      if (stamp !== '' && stamp === this.#folderStamp) return []
      const entries = await readdir(this.where.folder, { withFileTypes: true })
      const names = entries
        .filter(entry => (entry.isDirectory() || entry.isSymbolicLink()) && !entry.name.startsWith('.'))
        .map(entry => entry.name)
        .sort()
      this.#folderStamp = stamp
      const over = names.length - MAX_NAMES
      this.#setFault(over > 0 ? new DefinitionError('too_many', `${over} of its folders are ignored`) : undefined)
      return this.#setNames(names.slice(0, MAX_NAMES))
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      const isAbsent = code === 'ENOENT' || code === 'ENOTDIR'
      return this.#setNone(isAbsent ? undefined : new DefinitionError('unreadable', messageOf(error)))
    }
  }

  #setNone(error: DefinitionError | undefined): readonly string[] {
    this.#folderStamp = ''
    this.#setFault(error)
    return this.#setNames([])
  }

  /** Whether a workspace has no folder of agents, as most. A link would lead elsewhere. */
  #isWithoutFolder(): boolean {
    const { source, root, folder } = this.where
    if (source !== 'workspace' || !this.isLocal(root)) return false
    const look = (one: string) => lstatSync(one, { throwIfNoEntry: false })
    const above = look(path.dirname(folder))
    return !above || (above.isDirectory() && !look(folder))
  }

  #setNames(names: readonly string[]): readonly string[] {
    const known = new Set(this.#names)
    const now = new Set(names)
    for (const name of this.#readings.keys()) if (!now.has(name)) this.#keep(name, ++this.#looks, undefined)
    for (const name of this.#kept.keys()) if (!now.has(name)) this.#kept.delete(name)
    this.#names = names
    return names.filter(name => !known.has(name))
  }

  #setFault(error: DefinitionError | undefined): void {
    if (this.#fault?.ok === false && this.#fault.error.message === error?.message) return
    if (this.#fault || error) this.#version++
    this.#fault = error && { ok: false, name: '', path: this.where.folder, error }
    if (this.#fault && !this.#fault.ok) this.invalid(this.#fault)
  }

  async #readAll(names: readonly string[]): Promise<void> {
    let at = 0
    const work = async () => {
      while (at < names.length && !this.signal.aborted) {
        const name = names[at++] as string
        if (!this.#isUnchanged(name)) await this.read(name)
        if (at % READS_PER_TURN === 0) await turn()
      }
    }
    await Promise.all(Array.from({ length: Math.min(PARALLEL, names.length) }, work))
  }

  /** Whether a file on a local disk is as it was read. What an earlier look finds later is outdated, as after a {@link read}. */
  #isUnchanged(name: string): boolean {
    const stamp = this.#readings.get(name)?.stamp ?? ''
    if (stamp === '' || !isNear(this.where)) return false
    try {
      if (stampNow(definitionFile(this.where.folder, name), this.clock.now()) !== stamp) return false
    } catch {
      return false
    }
    this.#kept.set(name, ++this.#looks)
    return true
  }

  #keep(name: string, pass: number, reading: Reading | undefined): void {
    this.#kept.set(name, pass)
    const before = this.#readings.get(name)
    if (reading === before) return
    if (!reading) this.#readings.delete(name)
    else if (before && isSame(before.found, reading.found)) {
      this.#readings.set(name, { stamp: reading.stamp, found: before.found })
      return
    } else {
      this.#readings.set(name, reading)
      if (!reading.found.ok) this.invalid(reading.found)
    }
    this.#version++
  }
}

function isSame(a: Found, b: Found): boolean {
  if (a.ok && b.ok) return a.definition.digest === b.definition.digest
  return !a.ok && !b.ok && a.error.message === b.error.message
}
