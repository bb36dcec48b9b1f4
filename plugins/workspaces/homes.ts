import { realpathSync } from 'node:fs'
import { isInside } from './files.js'

/** The homes of the daemon and of the user, which a workspace must not swallow. */
export class Homes {
  readonly #all: readonly string[]

  /** @param daemon canonical */
  constructor(
    readonly daemon: string,
    user: string,
  ) {
    this.#all = [daemon, canonical(user)]
  }

  /** Whether a canonical folder is a home or contains one. */
  isAbove(folder: string): boolean {
    return this.#all.some(home => isInside(home, folder))
  }
}

function canonical(folder: string): string {
  try {
    return realpathSync(folder)
  } catch {
    return folder
  }
}
