import path from 'node:path'
import { type Clock, Fault, turn } from '../../../kernel/plugin.js'
import type { Heartbeat, Soul } from '../../../schemas/agents/sidecars.js'
import type { Workspace } from '../../desk/workspaces/api.js'
import { type AgentDefinition, stampOf } from '../agents/api.js'
import { SIDECARS, type Which } from './locations.js'

/** Agents that are checked concurrently. */
const PARALLEL = 8

/** A file with its checked state. */
interface Judged {
  readonly stamp: string
  readonly invalid: Heartbeat | Soul | undefined
}

/** The sidecars of one agent, for the survey. */
export interface Surveyed {
  readonly definition: AgentDefinition
  readonly workspace: Workspace | undefined
}

/**
 * Finds invalid sidecars. An agent without the file costs one file system access, and a file is read again only after a
 * change of it or of the settings.
 */
export class Survey {
  #judged = new Map<string, Judged>()
  #settings: unknown

  constructor(
    private readonly clock: Pick<Clock, 'now'>,
    private readonly read: (which: Which, of: Surveyed) => Promise<Heartbeat | Soul>,
  ) {}

  /** @param settings other inputs of the validation, whose members are compared by identity */
  async invalid(all: readonly Surveyed[], settings: readonly unknown[], signal: AbortSignal) {
    const before = isEqual(settings, this.#settings) ? this.#judged : new Map<string, Judged>()
    const now = new Map<string, Judged>()
    const todo = all.flatMap(of => (['soul', 'heartbeat'] as const).map(which => ({ which, of })))
    const visited = new Set<string>()
    const records: (Heartbeat | Soul)[] = []
    let next = 0
    const work = async () => {
      for (let one = todo[next++]; one && !signal.aborted; one = todo[next++]) {
        const { which, of } = one
        const { path: definition } = of.definition
        if (definition === undefined) {
          const found = await this.read(which, of)
          if (found.validation_status === 'invalid') records.push(found)
          continue
        }
        const file = path.join(path.dirname(definition), SIDECARS[which].file)
        if (visited.has(file)) continue
        visited.add(file)
        const judged = await this.#judge(file, one, before.get(file))
        if (judged) now.set(file, judged)
        if (visited.size % 256 === 0) await turn()
      }
    }
    await Promise.all(Array.from({ length: PARALLEL }, work))
    // Results from before the deadline are kept for the next report.
    this.#judged = signal.aborted ? new Map([...before, ...now]) : now
    this.#settings = settings
    return [...records, ...[...now.values()].flatMap(({ invalid }) => invalid ?? [])]
  }

  async #judge(
    file: string,
    { which, of }: { readonly which: Which; readonly of: Surveyed },
    before: Judged | undefined,
  ): Promise<Judged | undefined> {
    const stamp = await stampOf(file, this.clock.now()).catch((error: NodeJS.ErrnoException) =>
      error.code === 'ENOENT' || error.code === 'ENOTDIR' ? undefined : '',
    )
    if (stamp === undefined) return undefined
    if (stamp !== '' && before?.stamp === stamp) return before
    const found = await this.read(which, of).catch(error => {
      // The agent was removed after the listing.
      if (error instanceof Fault && error.code === 'agent_not_found') return undefined
      throw error
    })
    if (!found) return undefined
    const invalid = found.validation_status === 'invalid' ? found : undefined
    // Not cacheable: an unreadable file can become readable without changing.
    return { stamp: invalid?.diagnostics?.some(({ code }) => /unreadable|escape/.test(code)) ? '' : stamp, invalid }
  }
}

const isEqual = (one: readonly unknown[], other: unknown) =>
  Array.isArray(other) && one.length === other.length && one.every((value, at) => Object.is(value, other[at]))
