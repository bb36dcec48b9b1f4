import { Serial } from '../../kernel/kit/serial.js'
import { messageOf, type PluginKernel } from '../../kernel/plugin.js'
import type { HookEvent } from '../../schemas/hooks.js'
import type { SessionInfo } from '../sessions/api.js'
import type { Workspace, Workspaces } from '../workspaces/api.js'
import { HookDeclarers, type HookPlace, type Whom } from './api.js'
import { hookOf } from './declarations.js'
import { type ByEvent, byEvent, type DeclaredHook, hasEnabled } from './declared.js'

type BroughtKernel = PluginKernel<{ workspaces: typeof Workspaces }>

/**
 * Hooks of sources that are not the same everywhere, as skills are: each session has those of its place, its agent and itself from
 * its start on, and what is about no session those of its workspace. They are read anew when their source says that it has others.
 */
export class BroughtHooks {
  readonly #ofSessions = new Map<string, { readonly place: HookPlace; readonly hooks: ByEvent }>()
  /** By workspace; the empty id stands for none. */
  #ofPlaces: ReadonlyMap<string, ByEvent> = new Map()
  readonly #turns = new Serial()

  constructor(private readonly kernel: BroughtKernel) {}

  has(event: HookEvent, sessionId: string): boolean {
    const own = this.#ofSessions.get(sessionId)
    return own ? hasEnabled(own.hooks, event) : [...this.#ofPlaces.values()].some(hooks => hasEnabled(hooks, event))
  }

  of(event: HookEvent, { sessionId = '', workspaceId = '' }: Whom): readonly DeclaredHook[] {
    const own = this.#ofSessions.get(sessionId)?.hooks ?? this.#ofPlaces.get(workspaceId)
    return own?.get(event) ?? []
  }

  /** A session is about to start, or to be made: its id may stand for one that is not there yet. */
  async adopt(sessionId: string, place: HookPlace): Promise<void> {
    if (!this.#isUsed) return
    this.#ofSessions.set(sessionId, { place, hooks: byEvent(await this.read(place)) })
  }

  /** The first that somebody asks about a session may be before it starts. */
  async meet(session: SessionInfo, workspace: Workspace | undefined): Promise<void> {
    if (!this.knows(session.id)) await this.adopt(session.id, placeOf(session, workspace))
  }

  knows(sessionId: string): boolean {
    return this.#ofSessions.has(sessionId)
  }

  forget(sessionId: string): boolean {
    return this.#ofSessions.delete(sessionId)
  }

  /** Their source has others by now. */
  refresh(): Promise<void> {
    return this.#turns.run(async () => {
      if (!this.#isUsed) return
      const places: [string, HookPlace][] = [['', {}]]
      for (const workspace of this.kernel.needs.workspaces.list()) places.push([workspace.id, { workspace }])
      const read = places.map(async ([id, place]) => [id, byEvent(await this.read(place))] as const)
      // Asked for each event: places without any are left out.
      this.#ofPlaces = new Map((await Promise.all(read)).filter(([, hooks]) => hooks.size > 0))
      for (const [id, { place }] of [...this.#ofSessions]) {
        const hooks = byEvent(await this.read(place))
        if (this.#ofSessions.has(id)) this.#ofSessions.set(id, { place, hooks })
      }
    })
  }

  /** Those of a place. What is wrong with one is logged, and leaves the others alone. */
  async read(place: HookPlace): Promise<DeclaredHook[]> {
    const workspaceId = place.workspace?.id
    const all: DeclaredHook[] = []
    for (const { owner, entry } of this.kernel.collect(HookDeclarers)) {
      const declared = await entry.read(place).catch(error => {
        this.kernel.log.warn(`hooks of ${owner} are not in force: ${messageOf(error)}`)
        return []
      })
      for (const { written, of, base, isOfFiles } of declared) {
        try {
          const where = { source: entry.source, owner: of, workspaceId, isOfFiles, ...(base !== undefined && { base }) }
          all.push(hookOf(written, where))
        } catch (error) {
          this.kernel.log.warn(`a hook of ${entry.source} ${of} is not in force: ${messageOf(error)}`)
        }
      }
    }
    return all
  }

  get all(): readonly DeclaredHook[] {
    const events = [...this.#ofPlaces.values(), ...[...this.#ofSessions.values()].map(({ hooks }) => hooks)]
    return events.flatMap(hooks => [...hooks.values()].flat()).filter(({ enabled }) => enabled)
  }

  get #isUsed(): boolean {
    return this.kernel.collect(HookDeclarers).length > 0
  }
}

/** The place of a session. */
export const placeOf = (session: SessionInfo, workspace: Workspace | undefined): HookPlace => ({
  session,
  agent: session.agentName,
  ...(workspace && { workspace }),
})
