import { Serial } from '../../../kernel/kit/serial.js'
import { messageOf } from '../../../kernel/plugin.js'
import type { HookEvent } from '../../../schemas/hooks.js'
import type { Workspace } from '../../desk/workspaces/api.js'
import type { SessionInfo } from '../sessions/api.js'
import { HookDeclarers, type HookPlace, type Whom } from './api.js'
import { hookOf } from './declarations.js'
import { type ByEvent, byEvent, type DeclaredHook, hasEnabled } from './declared.js'
import type { K } from './needs.js'

/**
 * Hooks that differ by place, such as those of skills. A session gets the hooks of its workspace, agent and itself when it
 * starts; events without a session use the hooks of their workspace. Hooks are reloaded when their source changes.
 */
export class BroughtHooks {
  readonly #ofSessions = new Map<string, { readonly scope: HookPlace; readonly hooks: ByEvent }>()
  /** The hooks by workspace id; the empty id holds global hooks. */
  #ofPlaces: ReadonlyMap<string, ByEvent> = new Map()
  readonly #turns = new Serial()
  #first: Promise<void> | undefined
  #isRead = false

  constructor(private readonly kernel: K) {}

  /** Before the hooks of places are read, any event may have one. */
  has(event: HookEvent, sessionId: string): boolean {
    const own = this.#ofSessions.get(sessionId)
    if (!own && !this.#isRead && this.#isUsed) return true
    return own ? hasEnabled(own.hooks, event) : [...this.#ofPlaces.values()].some(hooks => hasEnabled(hooks, event))
  }

  of(event: HookEvent, { sessionId = '', workspaceId = '' }: Whom): readonly DeclaredHook[] {
    const own = this.#ofSessions.get(sessionId)?.hooks ?? this.#ofPlaces.get(workspaceId)
    return own?.get(event) ?? []
  }

  /** Loads the hooks of a session that is about to start; the id may be provisional. */
  async adopt(sessionId: string, scope: HookPlace): Promise<void> {
    if (!this.#isUsed) return
    this.#ofSessions.set(sessionId, { scope, hooks: byEvent(await this.hooksOf(scope)) })
  }

  /** Loads the hooks of a session on its first event, which may precede its start. */
  async meet(session: SessionInfo, workspace: Workspace | undefined): Promise<void> {
    if (!this.knows(session.id)) await this.adopt(session.id, scopeOf(session, workspace))
  }

  knows(sessionId: string): boolean {
    return this.#ofSessions.has(sessionId)
  }

  forget(sessionId: string): boolean {
    return this.#ofSessions.delete(sessionId)
  }

  /** Whether the hooks of places were read; until then events may have to wait for them. */
  get isRead(): boolean {
    return this.#isRead
  }

  /**
   * Reads the hooks of places once. Thousands of skills would delay the start, so the first event that may have a hook triggers the
   * read.
   */
  read(): Promise<void> {
    this.#first ??= this.refresh()
    return this.#first
  }

  /** Reloads all hooks. */
  refresh(): Promise<void> {
    return this.#turns.run(async () => {
      if (!this.#isUsed) return
      const places: [string, HookPlace][] = [['', {}]]
      for (const workspace of this.kernel.needs.workspaces.list()) places.push([workspace.id, { workspace }])
      const read = places.map(async ([id, scope]) => [id, byEvent(await this.hooksOf(scope))] as const)
      // Consulted for every event, so places without hooks are omitted.
      this.#ofPlaces = new Map((await Promise.all(read)).filter(([, hooks]) => hooks.size > 0))
      this.#isRead = true
      for (const [id, { scope }] of [...this.#ofSessions]) {
        const hooks = byEvent(await this.hooksOf(scope))
        if (this.#ofSessions.has(id)) this.#ofSessions.set(id, { scope, hooks })
      }
    })
  }

  /** The hooks of a place. An invalid declaration is logged and does not affect the others. */
  async hooksOf(scope: HookPlace): Promise<DeclaredHook[]> {
    const workspaceId = scope.workspace?.id
    const all: DeclaredHook[] = []
    for (const { owner, entry } of this.kernel.collect(HookDeclarers)) {
      const declared = await entry.read(scope).catch(error => {
        this.kernel.log.warn(`hooks of ${owner} could not be read and are ignored: ${messageOf(error)}`)
        return []
      })
      for (const { written, of, base, isOfFiles, extension } of declared) {
        try {
          const from = { isOfFiles, extension, ...(base !== undefined && { base }) }
          const where = { source: entry.source, owner: of, workspaceId, ...from }
          all.push(hookOf(written, where))
        } catch (error) {
          this.kernel.log.warn(`a hook of ${entry.source} ${of} is invalid and ignored: ${messageOf(error)}`)
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
export const scopeOf = (session: SessionInfo, workspace: Workspace | undefined): HookPlace => ({
  session,
  agent: session.agentName,
  ...(workspace && { workspace }),
})
