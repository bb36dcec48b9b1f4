import {
  coversCommand,
  coversWrite,
  isReading,
  subjectOf,
  type WantedAction,
  type WantedWrite,
} from './permission-rules.js'

/** Grants, and tool calls that asked, of one process that are remembered. */
export const MAX_REMEMBERED = 1000

/** An answered request, which lets through what the mode by itself would not. */
interface Grant {
  readonly action: WantedAction
  readonly canonical: readonly string[]
  readonly lasting: boolean
}

/** What the answers to earlier requests allow. */
export class Grants {
  #grants: Grant[] = []

  /** @param canonical the paths of the action, resolved */
  add(action: WantedAction, canonical: readonly string[], lasting: boolean): void {
    const subject = subjectOf(action)
    const known = this.#grants.some(grant => grant.lasting && subjectOf(grant.action) === subject)
    if (!known && this.#grants.length < MAX_REMEMBERED) this.#grants.push({ action, canonical, lasting })
  }

  /** May this canonical path be read, which lies outside of the workspace; a grant for once is used up. */
  useForRead(target: string): boolean {
    return this.#use(({ action, canonical }) => isReading(action.kind) && canonical.includes(target))
  }

  /** May this be written; a grant for once is used up. */
  useForWrite(write: WantedWrite): boolean {
    return this.#use(({ action, canonical, lasting }) => coversWrite(action, canonical, lasting, write))
  }

  /** May this command run; a grant for once is used up. @param root the folder of the session */
  useForCommand(argv: readonly string[], root?: string): boolean {
    return this.#use(({ action }) => coversCommand(action, argv, root))
  }

  /** What was allowed once is no longer. */
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

/** Tool calls for which permission was asked, and files that the daemon wrote once that was allowed; the newest ones. */
export class AskedCalls {
  readonly #ids = new Set<string>()
  readonly #paths = new Set<string>()

  add(id: string | undefined): void {
    if (id !== undefined) remember(this.#ids, id)
  }

  /** The daemon may write a file for the agent. @param paths absolute names of that file */
  addFile(...paths: readonly string[]): void {
    for (const path of paths) remember(this.#paths, path)
  }

  /**
   * Whether permission was asked for a tool call: by its id, or for each file that it names, as the agent had the daemon write it.
   * A request to write a file does not say to which tool call it belongs.
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
