import { lstatSync, statSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import type { Clock } from '../../../kernel/plugin.js'
import { ancestorsOf } from './paths.js'

/** Milliseconds for which a path counts as local after a look at it. */
const KNOWN_MS = 10_000
const MAX_KNOWN = 256

/**
 * Canonical paths that were on the disk of the home a moment ago. A synchronous look at one of them takes microseconds, and an
 * asynchronous one a trip through the thread pool. At any other path a synchronous look could block the daemon, because the path may
 * be on a network that does not answer.
 */
export class LocalDisk {
  /** Results of looks with the end of their time, in monotonic milliseconds. */
  readonly #known = new Map<string, { isLocal: boolean; readonly until: number }>()

  constructor(
    private readonly home: string,
    private readonly clock: Pick<Clock, 'monotonic'>,
  ) {}

  has(path: string): boolean {
    return this.#fresh(path)?.isLocal ?? false
  }

  /** Finds out whether a canonical path is there, from the part of it that exists. Never throws. */
  async note(path: string, existing = path): Promise<void> {
    if (this.#fresh(path)) return
    const known = { isLocal: false, until: this.clock.monotonic() + KNOWN_MS }
    if (this.#known.size >= MAX_KNOWN) this.#known.clear()
    this.#known.set(path, known)
    const [one, home] = await Promise.all([stat(existing), stat(this.home)]).catch(() => [])
    known.isLocal = one !== undefined && one.dev === home?.dev
  }

  #fresh(path: string) {
    const known = this.#known.get(path)
    return known && known.until > this.clock.monotonic() ? known : undefined
  }
}

/** The part of a canonical path that exists; undefined if a link is on it by now, which may lead to any disk. */
export function existingNow(path: string): string | undefined {
  let existing = '/'
  try {
    for (const folder of ancestorsOf(path).reverse()) {
      const found = lstatSync(folder, { throwIfNoEntry: false })
      if (!found) break
      if (found.isSymbolicLink()) return undefined
      existing = folder
    }
    return existing
  } catch {
    return undefined
  }
}

/** Whether a canonical path is a directory that the daemon has access to. */
export function isDirectoryNow(real: string): boolean {
  try {
    return statSync(`${real}/.`, { throwIfNoEntry: false }) !== undefined
  } catch {
    return false
  }
}
