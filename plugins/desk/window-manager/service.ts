import { command } from '../../../kernel/kit/commands/command-line.js'
import { type Actor, Fault, iso, type SocketReply, type Tx } from '../../../kernel/plugin.js'
import type {
  AttachClientBody,
  HistoryEntry,
  LayoutDocument,
  WindowChanges,
  WindowClient,
  WindowCommandBody,
  WindowCommandReply,
  WindowManagerActor,
  WindowManagerErrorBody,
  WindowManagerState,
  WindowPreferences,
  WindowPreviewReply,
  WindowStreamQuery,
} from '../../../schemas/window-manager.js'
import type { Workspace } from '../workspaces/api.js'
import type { WindowManagerApi } from './api.js'
import { changesBetween } from './document/changes.js'
import type { WindowDocument } from './document/document.js'
import { entryOf, stepped } from './document/history.js'
import { rebasedFrom } from './document/rebase.js'
import { diagnose } from './document/topology.js'
import { Layouts } from './layouts/layouts.js'
import { Clients } from './live/clients.js'
import { Live } from './live/live.js'
import { windowChannel } from './live/stream.js'
import { tell } from './live/tell.js'
import type { K } from './needs.js'
import { type CommandId, commandTable } from './reduce/command-table.js'
import { decodePayload, isHistoryCommand, reduce } from './reduce/reduce.js'
import type { Effect } from './reduce/reducer.js'
import { Refusal, refusalStatus, refuse } from './refusal.js'
import { preferences, preferred, WindowManagerSettings } from './settings.js'
import { DocumentStore, type Side, type StoredDocument } from './store.js'

/** The result of a command, before anything is written. */
interface Step {
  readonly document: WindowDocument
  readonly effect: Effect
  readonly changes: WindowChanges
  readonly changed: boolean
  readonly rebasedFrom?: number | undefined
  /** Updates the history; does nothing for commands that are not recorded. */
  record(t: Tx): void
}

type Refused<S> = S extends number ? { readonly status: S; readonly body: WindowManagerErrorBody } : never
type Answer<T> = T | Refused<(typeof refusalStatus)[keyof typeof refusalStatus]>

/** One document per workspace, changed by commands that specify the expected revision. */
export class WindowManagerService implements WindowManagerApi {
  /** Saved layouts. */
  readonly layouts: Layouts
  readonly #store: DocumentStore
  readonly #clients: Clients
  /** Readers of the stream. */
  readonly live = new Live()

  constructor(private readonly kernel: K) {
    this.layouts = new Layouts(kernel)
    this.#store = new DocumentStore(kernel.db)
    this.#clients = new Clients(kernel.clock, kernel.ids)
  }

  state(workspaceId: string): WindowManagerState | undefined {
    const workspace = this.kernel.needs.workspaces.get(workspaceId)
    return workspace && this.read(workspace)
  }

  preferences(workspaceId: string): WindowPreferences | undefined {
    if (!this.kernel.needs.workspaces.get(workspaceId)) return undefined
    return this.#preferences(this.#store.read(workspaceId).document)
  }

  /** The reply of a route for a workspace (id, name or path); refusals have the format of the contract. */
  async answer<T>(reference: string, work: (workspace: Workspace) => T | Promise<T>): Promise<Answer<T>> {
    let id = reference
    try {
      const workspace = await this.#workspace(reference)
      id = workspace.id
      return await work(workspace)
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      return { status: refusalStatus[error.code], body: error.toBody(id) } as Answer<never>
    }
  }

  /** The whole state, including both histories. */
  read(workspace: Workspace): WindowManagerState {
    return this.#toReader(workspace)
  }

  document({ id }: Workspace): LayoutDocument {
    return this.#store.read(id).document
  }

  diagnose(workspace: Workspace, document: LayoutDocument) {
    return diagnose(document, workspace.id)
  }

  /** Applies a command and writes its events in one transaction. Throws a Refusal without changing anything. */
  async command(workspace: Workspace, body: WindowCommandBody, actor: Actor): Promise<WindowCommandReply> {
    const done = await this.kernel.db.tx(t => {
      // The workspace may have been deleted since it was found; a write would leave an orphaned document.
      if (!this.kernel.needs.workspaces.get(workspace.id)) refuse('workspace_not_found', 'the workspace was deleted')
      const replaces = body.command_id === 'layout.replace'
      const current = replaces ? this.#store.readToReplace(t, workspace.id) : this.#store.read(workspace.id)
      const step = this.#step(current, body, actor)
      if (!step.changed) return { step, stored: current }
      const stored = { document: step.document, revision: current.revision + 1, updatedAt: this.kernel.clock.now() }
      this.#store.write(t, stored)
      step.record(t)
      const { command_id, origin } = body
      const details = {
        actor: actorOf(body.actor, actor),
        changes: step.changes,
        command_id,
        ...(origin && { origin }),
      }
      tell(this.kernel.needs.events, t, actor, current.document, stored, details)
      return { step, stored }
    })
    const { step, stored } = done
    const client = body.client_id ? this.#clients.take(stored.document, body.client_id, step.effect) : undefined
    if (client) this.live.notify(workspace.id)
    return {
      applied: step.changed,
      changes: client ? { ...step.changes, client_ids: [client.client_id] } : step.changes,
      ...(client && { client }),
      ...(step.rebasedFrom === undefined ? {} : { rebased_from: step.rebasedFrom }),
      snapshot: this.#toWire(workspace, stored, 1),
    }
  }

  /** The outcome of a command; nothing is written. */
  preview(workspace: Workspace, body: WindowCommandBody, actor: Actor): WindowPreviewReply {
    const current = this.#store.read(workspace.id)
    const { document, changes, changed } = this.#step(current, body, actor)
    const client = body.client_id ? this.#clients.get(document, body.client_id) : undefined
    const revision = current.revision + (changed ? 1 : 0)
    return {
      changed,
      changes,
      ...(client && { client }),
      snapshot: this.#toWire(workspace, { ...current, document, revision }, 1),
    }
  }

  clients({ id }: Workspace): WindowClient[] {
    return this.#clients.list(this.#store.read(id).document)
  }

  attach({ id }: Workspace, body: AttachClientBody): WindowClient {
    const client = this.#clients.attach(this.#store.read(id).document, body)
    this.live.notify(id)
    return client
  }

  detach({ id }: Workspace, clientId: string): void {
    this.#clients.detach(id, clientId)
    this.live.notify(id)
  }

  /** The channel of one reader. Throws a Refusal before the first message if the reader's client is not attached. */
  stream(workspace: Workspace, query: WindowStreamQuery, signal: AbortSignal): SocketReply {
    const { id } = workspace
    const { client_id: clientId } = query
    if (clientId !== undefined) signal.addEventListener('abort', this.#clients.hold(id, clientId), { once: true })
    const isThere = () => this.kernel.needs.workspaces.get(id) !== undefined
    const source = {
      workspaceId: id,
      live: this.live,
      revision: () => (isThere() ? this.#store.read(id).revision : undefined),
      snapshot: () => this.#toReader(workspace, 1),
      client: () => this.#clients.list(this.#store.read(id).document).find(({ client_id }) => client_id === clientId),
      signal,
    }
    return windowChannel(source, query.after_revision)
  }

  async #workspace(reference: string): Promise<Workspace> {
    const { workspaces } = this.kernel.needs
    const known = workspaces.get(reference)
    if (known) return known
    try {
      return await workspaces.find(reference)
    } catch (error) {
      if (error instanceof Fault && error.status < 500)
        return refuse('workspace_not_found', error.message, { next: error.next ?? command('workspace list') })
      throw error
    }
  }

  #step(current: StoredDocument, body: WindowCommandBody, actor: Actor): Step {
    const { document, revision } = current
    const id = document.workspace_id
    if (body.workspace_id !== undefined && body.workspace_id !== id)
      refuse('invalid_command', `workspace_id differs from the workspace in the path, ${id}`)
    const rebased = rebasedFrom(document, revision, body.expected_revision, body.rebase)
    const client = body.client_id ? this.#clients.get(document, body.client_id) : undefined
    if (body.command_id === 'desktop.switch' && !client)
      refuse('client_not_found', 'desktop.switch names a client in client_id', { next: command('desktop clients') })
    const next = isHistoryCommand(body.command_id)
      ? this.#travel(document, body.command_id === 'layout.undo' ? 'undo' : 'redo', body.payload)
      : this.#reduce(current, body.command_id, body, actor, client?.active_desktop_id)
    const changes = changesBetween(document, next.document)
    const changed = Object.keys(changes).length > 0 || !sameOverrides(document, next.document)
    return { ...next, changes, changed, rebasedFrom: rebased }
  }

  #reduce(
    { document, revision }: StoredDocument,
    id: Exclude<CommandId, 'layout.undo' | 'layout.redo'>,
    { payload, origin, actor: claimed }: WindowCommandBody,
    actor: Actor,
    activeDesktop: string | undefined,
  ) {
    const reduced = reduce(document, id, payload, {
      revision,
      activeDesktop,
      mint: prefix => this.kernel.ids.id(prefix),
      settings: this.#settings(),
      layout: layoutId => this.layouts.find(document.workspace_id, layoutId),
    })
    if (reduced.is === 'refused') throw reduced.refusal
    const record = (t: Tx) => {
      if (!commandTable[id].recorded || reduced.effect.onlyFocus) return
      const at = iso(this.kernel.clock.now())
      const entry = entryOf(id, actorOf(claimed, actor), at, document, reduced.document, origin)
      this.#store.push(t, document.workspace_id, 'undo', entry, this.#historyLimit(reduced.document))
      this.#store.clear(t, document.workspace_id, 'redo')
    }
    return { document: reduced.document, effect: reduced.effect, record }
  }

  #travel(document: WindowDocument, way: Side, payload: unknown) {
    decodePayload(`layout.${way}`, payload)
    const id = document.workspace_id
    // The limit may have been lowered since the entries were made.
    const limit = this.#historyLimit(document)
    const [entry] = this.#store.history(id, way, Math.min(limit, 1))
    if (!entry) return refuse('history_boundary', `there is nothing to ${way}`)
    const next = stepped(document, entry, way)
    const diagnostics = diagnose(next.document, id)
    if (diagnostics.length > 0)
      refuse('invalid_topology', `this cannot be ${way === 'undo' ? 'undone' : 'redone'}`, { diagnostics })
    const record = (t: Tx) => {
      this.#store.trim(t, id, way, limit)
      this.#store.pop(t, id, way)
      this.#store.push(t, id, way === 'undo' ? 'redo' : 'undo', next.entry, this.#historyLimit(next.document))
    }
    return { document: next.document, effect: {}, record }
  }

  /** The state for clients, including the effective preferences. */
  #toReader(workspace: Workspace, newest?: number): WindowManagerState {
    const stored = this.#store.read(workspace.id)
    return { ...this.#toWire(workspace, stored, newest), preferences: this.#preferences(stored.document) }
  }

  #toWire(workspace: Workspace, stored: StoredDocument, newest = Number.POSITIVE_INFINITY): WindowManagerState {
    const { document, revision, updatedAt } = stored
    const most = Math.min(newest, this.#historyLimit(document))
    const side = (name: Side): HistoryEntry[] => this.#store.history(workspace.id, name, most)
    return {
      ...document,
      revision,
      updated_at: iso(updatedAt ?? workspace.createdAt),
      history: { undo: side('undo'), redo: side('redo') },
    }
  }

  #preferences({ overrides }: WindowDocument): WindowPreferences {
    return preferred(this.#settings(), overrides)
  }

  #settings(): WindowPreferences {
    return preferences(entry => this.kernel.config.get(entry))
  }

  #historyLimit({ overrides }: WindowDocument): number {
    return overrides.history_limit ?? this.kernel.config.get(WindowManagerSettings.history_limit)
  }

  /** Removes a deleted workspace from memory. */
  forget(workspaceId: string): void {
    this.#clients.forget(workspaceId)
    this.live.forget(workspaceId)
  }
}

const sameOverrides = (a: WindowDocument, b: WindowDocument) =>
  JSON.stringify(a.overrides) === JSON.stringify(b.overrides)

/** The actor that the caller claims to act for, else the caller itself. */
const actorOf = (claimed: WindowManagerActor | undefined, { kind, id }: Actor): WindowManagerActor =>
  claimed?.id || claimed?.kind ? claimed : { kind, id }
