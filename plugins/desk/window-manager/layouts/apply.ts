import type { WindowDiagnostic } from '../../../../schemas/window-manager.js'
import { type Window, type WindowDocument, windowOf, windowsIn } from '../document/document.js'
import { attach, detach, holderOf, type Mint, tile } from '../document/tree.js'
import type { Participants } from '../reduce/command-table.js'
import { renameWindows } from '../reduce/window-commands.js'
import { refuse } from '../refusal.js'

/** A stored layout with a valid document. */
export interface SavedLayout {
  readonly id: string
  readonly display_name: string
  readonly aspect: 'any' | 'landscape' | 'portrait'
  readonly overflow: 'stack' | 'reject'
  readonly participants?:
    | readonly { readonly id: string; readonly window_id: string; readonly required?: boolean | undefined }[]
    | undefined
  readonly document: WindowDocument
}

interface Wishes {
  readonly participants?: Participants | undefined
  /** Size of the screen in pixels; without it, the aspect is not checked. */
  readonly viewport?: { readonly width: number; readonly height: number } | undefined
}

/**
 * The document of a workspace after applying a layout. An open window takes the layout's position for its app and instance key;
 * the layout's other windows are opened. Open windows without a position are stacked or refused, as the layout specifies. Throws a
 * Refusal with all reasons.
 */
export function applyLayout(current: WindowDocument, layout: SavedLayout, wishes: Wishes, mint: Mint): WindowDocument {
  const wrong = [...aspectProblems(layout, wishes), ...slotProblems(layout, wishes)]
  const next = structuredClone(layout.document)
  next.workspace_id = current.workspace_id
  fillSlots(next, layout, wishes)
  const extra = adopt(next, current, mint)
  if (layout.overflow === 'reject')
    for (const { id, app } of extra)
      wrong.push({ code: 'layout.overflow', path: `windows.${id}`, message: `the layout has no place for ${app}` })
  if (wrong.length > 0)
    refuse('invalid_command', `the layout ${layout.display_name} does not fit: ${wrong[0]?.message}`, {
      diagnostics: wrong,
    })
  stackExtra(next, extra, mint)
  return next
}

function aspectProblems({ aspect }: SavedLayout, { viewport }: Wishes): WindowDiagnostic[] {
  if (!viewport || aspect === 'any') return []
  const actual = viewport.width >= viewport.height ? 'landscape' : 'portrait'
  if (actual === aspect) return []
  return [{ code: 'layout.aspect', path: 'aspect', message: `it is for ${aspect} screens, and this one is ${actual}` }]
}

function slotProblems({ participants = [] }: SavedLayout, wishes: Wishes): WindowDiagnostic[] {
  const assignments = wishes.participants ?? {}
  const missing = participants.filter(({ id, required }) => required && !Object.hasOwn(assignments, id))
  const unknown = Object.keys(assignments).filter(id => !participants.some(slot => slot.id === id))
  return [
    ...missing.map(({ id }) => ({
      code: 'layout.participant',
      path: `participants.${id}`,
      message: `slot ${id} must be taken`,
    })),
    ...unknown.map(id => ({
      code: 'layout.participant',
      path: `participants.${id}`,
      message: `there is no slot ${id}`,
    })),
  ]
}

/** Configures the windows of filled slots for their participants and removes those of empty slots. */
function fillSlots(document: WindowDocument, { participants = [] }: SavedLayout, wishes: Wishes): void {
  const assignments = wishes.participants ?? {}
  for (const { id, window_id } of participants) {
    const window = windowOf(document, window_id)
    if (!window) continue
    const taker = Object.hasOwn(assignments, id) ? assignments[id] : undefined
    if (taker) {
      if (taker.instance_key !== undefined) window.instance_key = taker.instance_key
      if (taker.route) window.route = taker.route
    } else {
      for (const desktop of document.desktops) detach(desktop, window_id)
      delete document.windows[window_id]
    }
  }
}

/** Moves open windows to their positions in the layout; returns those without one. */
function adopt(next: WindowDocument, current: WindowDocument, mint: Mint): Window[] {
  const open = Object.values(current.windows)
  const names = new Map<string, string>()
  const windows: Record<string, Window> = {}
  for (const planned of Object.values(next.windows)) {
    const taken = new Set(names.values())
    const same = ({ id, app, instance_key }: Window) =>
      !taken.has(id) && app === planned.app && (instance_key ?? '') === (planned.instance_key ?? '')
    const found = open.find(same)
    // The id of the layout's window may already belong to a different open window.
    const id = found?.id ?? (windowOf(current, planned.id) ? mint('win') : planned.id)
    names.set(planned.id, id)
    windows[id] = { ...planned, id, ...(found && { route: found.route, return_anchor: undefined }) }
  }
  next.windows = windows
  for (const desktop of next.desktops) renameWindows(desktop, id => names.get(id) ?? id)
  const kept = new Set(names.values())
  return open.filter(({ id }) => !kept.has(id))
}

/** Stacks extra windows behind the last tiled window of the first desktop. */
function stackExtra(document: WindowDocument, extra: readonly Window[], mint: Mint): void {
  const [desktop] = document.desktops
  if (!desktop) return
  const group = desktop.groups.at(-1)
  const shown = group && windowsIn(group.root).at(-1)
  for (const window of extra) {
    document.windows[window.id] = { ...window, desktop_id: desktop.id, return_anchor: undefined }
    if (shown === undefined) tile(desktop, window.id, mint)
    else attach(desktop, window.id, shown, 'center', mint)
  }
  const holder = shown === undefined ? undefined : holderOf(desktop, shown)?.node
  if (holder?.kind === 'stack' && shown !== undefined) holder.active_id = shown
}
