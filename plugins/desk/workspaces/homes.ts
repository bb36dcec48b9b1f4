import { realpathSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { isInside, isOfDaemon } from './files.js'

/** Shared folders for temporary files. */
const TEMPORARY = ['/tmp', '/var/tmp', '/private/tmp', '/private/var/tmp', '/dev/shm']

/** The homes of the daemon and of the user, which a workspace must not include. */
export class Homes {
  readonly #user: readonly string[]
  readonly #temporary: ReadonlySet<string>

  /** @param daemon canonical path */
  constructor(
    readonly daemon: string,
    user: string,
  ) {
    this.#user = [user, os.homedir(), os.userInfo().homedir].map(canonical)
    this.#temporary = new Set([...TEMPORARY, os.tmpdir()].map(canonical))
  }

  /** Whether a canonical folder is a home or contains one. */
  isAbove(folder: string): boolean {
    return [this.daemon, this.#user[0]].some(home => home !== undefined && isInside(home, folder))
  }

  /** Whether a canonical folder is in the home of the daemon, outside of `scratch`. */
  isOfDaemon(folder: string): boolean {
    return isOfDaemon(folder, this.daemon)
  }

  /** Why a canonical folder is too wide for agents to work in; undefined for any other folder. */
  breadthOf(folder: string): string | undefined {
    if (folder === path.parse(folder).root) return 'is the root of the file system'
    if (this.#user.includes(folder)) return 'is your home'
    if (this.#user.some(home => isInside(home, folder))) return 'contains your home'
    if (folder === this.daemon) return 'is the home of the daemon'
    if (isInside(this.daemon, folder)) return 'contains the home of the daemon'
    if (this.isOfDaemon(folder)) return 'belongs to the daemon'
    return this.#temporary.has(folder) ? 'is the folder for temporary files' : undefined
  }
}

function canonical(folder: string): string {
  try {
    return realpathSync(folder)
  } catch {
    return folder
  }
}
