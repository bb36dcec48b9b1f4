import { command } from '../../../../kernel/kit/commands/command-line.js'
import { type Clock, type Ids, iso } from '../../../../kernel/plugin.js'
import type { AttachClientBody, WindowClient } from '../../../../schemas/window-manager.js'
import { type WindowDocument, windowOf } from '../document/document.js'
import type { Effect } from '../reduce/reducer.js'
import { refuse } from '../refusal.js'

/** Milliseconds after which a client without requests or streams expires. */
const CLIENT_TTL_MS = 5 * 60_000
/** Most clients of one workspace; beyond it, the longest inactive client is removed. */
const MOST = 64

interface Attached {
  readonly id: string
  readonly connectedAt: number
  activeDesktop: string
  /** Windows, most recently focused first. */
  focusOrder: string[]
  revision: number
  seenAt: number
  streams: number
}

/**
 * Screens that currently show a workspace, with their desktop and focus. Kept in memory only: after a restart they attach again.
 */
export class Clients {
  readonly #byWorkspace = new Map<string, Map<string, Attached>>()

  constructor(
    private readonly clock: Clock,
    private readonly ids: Ids,
  ) {}

  /** Attaches a new client, or refreshes the client with this id. */
  attach(document: WindowDocument, { client_id, active_desktop_id }: AttachClientBody): WindowClient {
    if (active_desktop_id !== undefined && !document.desktops.some(({ id }) => id === active_desktop_id))
      refuse('desktop_not_found', `there is no desktop ${active_desktop_id}`, { next: command('desktop list') })
    const here = this.#living(document.workspace_id)
    const now = this.clock.now()
    const known = client_id === undefined ? undefined : here.get(client_id)
    const client: Attached = known ?? {
      id: client_id ?? this.ids.id('cli'),
      connectedAt: now,
      activeDesktop: document.desktops[0]?.id ?? '',
      focusOrder: [],
      revision: 0,
      seenAt: now,
      streams: 0,
    }
    client.seenAt = now
    if (active_desktop_id !== undefined && active_desktop_id !== client.activeDesktop) {
      client.activeDesktop = active_desktop_id
      client.revision++
    }
    here.set(client.id, client)
    const silent = [...here.values()].filter(({ streams }) => streams === 0).sort((a, b) => a.seenAt - b.seenAt)
    for (const { id } of silent.slice(0, Math.max(0, here.size - MOST))) here.delete(id)
    this.#byWorkspace.set(document.workspace_id, here)
    return toWire(client, document)
  }

  list(document: WindowDocument): WindowClient[] {
    return [...this.#living(document.workspace_id).values()].map(client => toWire(client, document))
  }

  /** Returns a client and refreshes its expiry. Throws `window_manager_client_not_found`. */
  get(document: WindowDocument, id: string): WindowClient {
    const client = this.#at(document.workspace_id, id)
    client.seenAt = this.clock.now()
    return toWire(client, document)
  }

  detach(workspaceId: string, id: string): void {
    this.#at(workspaceId, id)
    this.#byWorkspace.get(workspaceId)?.delete(id)
  }

  /** Applies the effect of a command to its client; undefined if the client detached while the command was written. */
  take(document: WindowDocument, id: string, { focus, show }: Effect): WindowClient | undefined {
    const client = this.#living(document.workspace_id).get(id)
    if (!client) return undefined
    if (show !== undefined) client.activeDesktop = show
    if (focus !== undefined) client.focusOrder = [focus, ...client.focusOrder.filter(other => other !== focus)]
    client.focusOrder = client.focusOrder.filter(other => windowOf(document, other))
    if (show !== undefined || focus !== undefined) client.revision++
    return toWire(client, document)
  }

  /** Prevents expiry of a client while it reads a stream; returns a callback for the end of the stream. */
  hold(workspaceId: string, id: string): () => void {
    const client = this.#at(workspaceId, id)
    client.streams++
    return () => {
      client.streams--
      client.seenAt = this.clock.now()
    }
  }

  forget(workspaceId: string): void {
    this.#byWorkspace.delete(workspaceId)
  }

  #at(workspaceId: string, id: string): Attached {
    const client = this.#living(workspaceId).get(id)
    return (
      client ??
      refuse('client_not_found', `there is no client ${id}; it may have expired, then it attaches again`, {
        next: command('desktop clients'),
      })
    )
  }

  #living(workspaceId: string): Map<string, Attached> {
    const here = this.#byWorkspace.get(workspaceId) ?? new Map<string, Attached>()
    const oldest = this.clock.now() - CLIENT_TTL_MS
    for (const [id, { streams, seenAt }] of here) if (streams === 0 && seenAt < oldest) here.delete(id)
    return here
  }
}

/** Omits windows and desktops that are no longer in the document. */
function toWire(client: Attached, document: WindowDocument): WindowClient {
  const order = client.focusOrder.filter(id => windowOf(document, id))
  const shown = document.desktops.find(({ id }) => id === client.activeDesktop) ?? document.desktops[0]
  return {
    client_id: client.id,
    workspace_id: document.workspace_id,
    active_desktop_id: shown?.id ?? '',
    focus_order: order,
    focused_window_id: order[0] ?? null,
    presentation_revision: client.revision,
    connected_at: iso(client.connectedAt),
  }
}
