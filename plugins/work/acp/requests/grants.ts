import {
  coversCommand,
  coversWrite,
  isReading,
  subjectOf,
  type WantedAction,
  type WantedWrite,
} from './permission-rules.js'

/** Remembered grants and tool calls of one process. */
export const MAX_REMEMBERED = 1000

/** An answered request that allows more than the mode does. */
interface Grant {
  readonly action: WantedAction
  readonly canonical: readonly string[]
  readonly lasting: boolean
}

/** The operations allowed by answers to earlier requests. */
export class Grants {
  #grants: Grant[] = []

  /** @param canonical the paths of the action, resolved */
  add(action: WantedAction, canonical: readonly string[], lasting: boolean): void {
    const subject = subjectOf(action)
    const known = this.#grants.some(grant => grant.lasting && subjectOf(grant.action) === subject)
    if (!known && this.#grants.length < MAX_REMEMBERED) this.#grants.push({ action, canonical, lasting })
  }

  /** Whether this canonical path outside of the workspace may be read. Uses up a one-time grant. */
  useForRead(target: string): boolean {
    return this.#use(({ action, canonical }) => isReading(action.kind) && canonical.includes(target))
  }

  /** Whether this write is allowed. Uses up a one-time grant. */
  useForWrite(write: WantedWrite): boolean {
    return this.#use(({ action, canonical, lasting }) => coversWrite(action, canonical, lasting, write))
  }

  /** Whether this command may run. Uses up a one-time grant. @param root the folder of the session */
  useForCommand(argv: readonly string[], root?: string): boolean {
    return this.#use(({ action }) => coversCommand(action, argv, root))
  }

  /** Removes the one-time grants. */
  endTurn(): void {
    this.#grants = this.#grants.filter(({ lasting }) => lasting)
  }

  #use(covers: (grant: Grant) => boolean): boolean {
    const index = this.#grants.findIndex(covers)
    const grant = this.#grants[index]
    if (!grant) return false
    if (!grant.lasting) this.#grants.splice(index, 1)
    return true
  }
}

/** Recent tool calls with a permission request, and files that the daemon wrote after one. */
export class AskedCalls {
  readonly #ids = new Set<string>()
  readonly #paths = new Set<string>()

  add(id: string | undefined): void {
    if (id !== undefined) remember(this.#ids, id)
  }

  /** Records that the daemon may write a file for the agent. @param paths absolute names of that file */
  addFile(...paths: readonly string[]): void {
    for (const path of paths) remember(this.#paths, path)
  }

  /**
   * Whether permission was requested for a tool call: by its ID, or for each file that it names. The second check is needed because
   * a request to write a file does not name its tool call.
   * @param paths absolute
   */
  has(id: string, paths: readonly string[]): boolean {
    return this.#ids.has(id) || (paths.length > 0 && paths.every(path => this.#paths.has(path)))
  }
}

function remember<T>(all: Set<T>, one: T): void {
  all.add(one)
  const [oldest] = all
  if (all.size > MAX_REMEMBERED && oldest !== undefined) all.delete(oldest)
}
