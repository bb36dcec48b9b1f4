import { anchorOf, putBack } from '../document/anchor.js'
import {
  type Desktop,
  FLOATING,
  type Rect,
  WHOLE,
  type Window,
  type WindowDocument,
  windowOf,
} from '../document/document.js'
import { chosenDesktop, desktopAt, windowAt } from '../document/lookup.js'
import { attach, detach, holderOf, type Mint, tile } from '../document/tree.js'
import { refuse } from '../refusal.js'
import type { CommandContext, Effect, Reducer } from './reducer.js'

export const open: Reducer<'window.open'> = (draft, payload, context) => {
  const { mint, activeDesktop, settings } = context
  const { app, instance_key } = payload
  const known =
    instance_key === undefined
      ? undefined
      : Object.values(draft.windows).find(window => window.app === app && window.instance_key === instance_key)
  if (known) return { ...giveFocus(draft, known, context), onlyFocus: true }
  const target = payload.target_window_id === undefined ? undefined : windowAt(draft, payload.target_window_id)
  const desktop = target?.desktop ?? chosenDesktop(draft, payload.desktop_id, activeDesktop)
  const id = payload.id ?? mint('win')
  if (windowOf(draft, id)) refuse('invalid_command', `window ${id} is open already`)
  const window: Window = {
    id,
    app,
    desktop_id: desktop.id,
    ...(instance_key === undefined ? {} : { instance_key }),
    minimized: false,
    placement: 'tiled',
    floating_rect: payload.floating_rect ?? { ...FLOATING },
    route: payload.route ?? { pathname: '/', search: {} },
  }
  draft.windows[id] = window
  const policy = draft.overrides.new_window_policy ?? settings.new_window_policy
  const wanted = payload.floating_rect ? 'floating' : (payload.placement ?? policy)
  if (wanted === 'floating' && !target) desktop.floating.push(id)
  else place(desktop, id, target?.window, payload.edge, mint)
  return giveFocus(draft, window, context)
}

export const navigate: Reducer<'window.navigate'> = (draft, { window_id, route }) => {
  windowAt(draft, window_id).window.route = route
  return undefined
}

export const close: Reducer<'window.close'> = (draft, { window_id }) => {
  const { window, desktop } = windowAt(draft, window_id)
  detach(desktop, window.id)
  delete draft.windows[window.id]
  return undefined
}

export const focus: Reducer<'window.focus'> = (draft, { window_id }, context) =>
  giveFocus(draft, windowAt(draft, window_id).window, context)

export const move: Reducer<'window.move'> = (draft, payload, context) => {
  const { mint, revision } = context
  const { window, desktop } = windowAt(draft, payload.window_id)
  const target = payload.target_window_id === undefined ? undefined : windowAt(draft, payload.target_window_id)
  if (target?.window === window) refuse('invalid_command', 'a window cannot be moved beside itself')
  const goal = target?.desktop ?? (payload.desktop_id === undefined ? desktop : desktopAt(draft, payload.desktop_id))
  if (!target && goal === desktop && !payload.floating_rect && payload.edge === undefined)
    refuse('invalid_command', 'give a destination: target_window_id, edge, desktop_id or floating_rect')
  const floats = payload.floating_rect !== undefined || (window.placement === 'floating' && !target && !payload.edge)
  if (floats) {
    if (window.placement !== 'floating') window.return_anchor = anchorOf(window, desktop, revision)
    detach(desktop, window.id)
    goal.floating.push(window.id)
    window.floating_rect = payload.floating_rect ?? window.floating_rect
  } else {
    detach(desktop, window.id)
    window.return_anchor = undefined
    place(goal, window.id, target?.window, payload.edge, mint)
  }
  window.desktop_id = goal.id
  return giveFocus(draft, window, context)
}

export const swap: Reducer<'window.swap'> = (draft, { window_id, target_window_id }, context) => {
  const one = windowAt(draft, window_id)
  const other = windowAt(draft, target_window_id)
  const focused = [one, other].find(({ window, desktop }) => window.id === desktop.focus_owner)
  const trade = (id: string) => (id === window_id ? target_window_id : id === target_window_id ? window_id : id)
  for (const desktop of new Set([one.desktop, other.desktop])) renameWindows(desktop, trade)
  for (const key of ['floating_rect', 'minimized', 'return_anchor'] as const) {
    const mine = one.window[key]
    Object.assign(one.window, { [key]: other.window[key] })
    Object.assign(other.window, { [key]: mine })
  }
  // On one desktop, focus follows its window. Across desktops, focus stays at the position.
  return focused && one.desktop === other.desktop ? giveFocus(draft, focused.window, context) : undefined
}

export const toggleFloating: Reducer<'window.toggle_floating'> = (draft, { window_id, minimized }, context) => {
  const { mint, revision } = context
  const { window, desktop } = windowAt(draft, window_id)
  if (window.placement !== 'floating') float(window, desktop, window.floating_rect, revision)
  else if (minimized === undefined) putBack(draft, window, desktop, mint)
  window.minimized = minimized ?? false
  return minimized ? undefined : giveFocus(draft, window, context)
}

/** A zoomed window floats over the whole desktop; its anchor records the former position. */
export const zoom: Reducer<'window.zoom'> = (draft, { window_id }, context) => {
  const { mint, revision } = context
  const { window, desktop } = windowAt(draft, window_id)
  const isZoomed = window.placement === 'floating' && isWhole(window.floating_rect)
  if (!isZoomed && window.placement === 'floating') window.floating_rect = { ...WHOLE }
  else if (!isZoomed) float(window, desktop, WHOLE, revision)
  else if (window.return_anchor) {
    putBack(draft, window, desktop, mint)
    window.floating_rect = { ...FLOATING }
  } else window.floating_rect = { ...FLOATING }
  return giveFocus(draft, window, context)
}

const isWhole = ({ x, y, width, height }: Rect) => x === 0 && y === 0 && width === 1 && height === 1

function float(window: Window, desktop: Desktop, rect: Rect, revision: number): void {
  window.return_anchor = anchorOf(window, desktop, revision)
  detach(desktop, window.id)
  desktop.floating.push(window.id)
  window.floating_rect = { ...rect }
}

function place(
  desktop: Desktop,
  id: string,
  target: Window | undefined,
  edge: Parameters<typeof tile>[3],
  mint: Mint,
): void {
  if (target) attach(desktop, id, target.id, edge ?? 'right', mint)
  else tile(desktop, id, mint, edge)
}

/** Renames windows wherever a desktop refers to them. */
export function renameWindows(desktop: Desktop, rename: (id: string) => string): void {
  desktop.floating = desktop.floating.map(rename)
  if (desktop.focus_owner) desktop.focus_owner = rename(desktop.focus_owner)
  const visit = (node: Desktop['groups'][number]['root']): void => {
    if (node.kind === 'leaf') node.window_id = rename(node.window_id)
    else if (node.kind === 'stack') {
      node.window_ids = node.window_ids.map(rename)
      node.active_id = rename(node.active_id)
    } else for (const child of node.children) visit(child)
  }
  for (const group of desktop.groups) visit(group.root)
}

function giveFocus(draft: WindowDocument, window: Window, { settings }: CommandContext): Effect {
  const desktop = desktopAt(draft, window.desktop_id)
  desktop.focus_owner = window.id
  window.minimized = false
  if (desktop.floating.includes(window.id) && (draft.overrides.raise_on_focus ?? settings.raise_on_focus))
    desktop.floating = [...desktop.floating.filter(id => id !== window.id), window.id]
  const holder = holderOf(desktop, window.id)?.node
  if (holder?.kind === 'stack') holder.active_id = window.id
  return { focus: window.id, show: desktop.id }
}
