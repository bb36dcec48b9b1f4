import { command, placeholder } from '../../../../kernel/kit/commands/command-line.js'
import {
  type Axis,
  type Desktop,
  type Node,
  nodesIn,
  type Split,
  WHOLE,
  type WindowDocument,
  windowsIn,
} from '../document/document.js'
import { chosenDesktop, desktopAt, windowAt } from '../document/lookup.js'
import { diagnose, isValid } from '../document/topology.js'
import { holderOf, type Mint, parentOf } from '../document/tree.js'
import { applyLayout } from '../layouts/apply.js'
import { refuse } from '../refusal.js'
import { type Reducer, summary } from './reducer.js'

/** Smallest share of a split after resizing. */
const LEAST = 0.05

export const arrange: Reducer<'layout.arrange'> = (draft, { desktop_id, mode }, { mint, activeDesktop }) => {
  const desktop = chosenDesktop(draft, desktop_id, activeDesktop)
  const ids = desktop.groups.flatMap(group => windowsIn(group.root))
  if (ids.length === 0) return undefined
  const shapes: Record<typeof mode, () => Node> = {
    columns: () => row('horizontal', ids.map(leafOf(mint)), mint),
    rows: () => row('vertical', ids.map(leafOf(mint)), mint),
    grid: () => grid(ids, mint),
    main: () => {
      const [first = '', ...others] = ids
      if (others.length === 0) return leafOf(mint)(first)
      return row('horizontal', [leafOf(mint)(first), row('vertical', others.map(leafOf(mint)), mint)], mint)
    },
    stack: () => ({ id: mint('nd'), kind: 'stack', window_ids: ids, active_id: shownOf(desktop, ids) }),
  }
  desktop.groups = [{ id: desktop.groups[0]?.id ?? mint('grp'), frame: { ...WHOLE }, root: shapes[mode]() }]
  return undefined
}

const shownOf = (desktop: Desktop, ids: readonly string[]) => ids.find(id => id === desktop.focus_owner) ?? ids[0] ?? ''
const leafOf =
  (mint: Mint) =>
  (window_id: string): Node => ({ id: mint('nd'), kind: 'leaf', window_id })

function row(axis: Axis, children: Node[], mint: Mint): Node {
  const [only] = children
  if (children.length === 1 && only) return only
  return { id: mint('nd'), kind: 'split', axis, children, weights: children.map(() => 1 / children.length) }
}

/** A grid with as many columns as rows, or one more; the last row is divided among the remaining windows. */
function grid(ids: readonly string[], mint: Mint): Node {
  const columns = Math.ceil(Math.sqrt(ids.length))
  const rows: Node[] = []
  for (let i = 0; i < ids.length; i += columns)
    rows.push(row('horizontal', ids.slice(i, i + columns).map(leafOf(mint)), mint))
  return row('vertical', rows, mint)
}

export const resize: Reducer<'layout.resize'> = (draft, payload) => {
  if ('frame' in payload) {
    const group = draft.desktops.flatMap(({ groups }) => groups).find(({ id }) => id === payload.group_id)
    if (!group) return refuse('invalid_command', `there is no group ${payload.group_id}`)
    group.frame = payload.frame
  } else if ('split_id' in payload) {
    shift(splitAt(draft, payload.split_id), payload.boundary_index, payload.delta)
  } else {
    const { split, index } = splitAround(draft, payload.window_id, payload.axis)
    // The last child has no boundary after it, so the one before it moves in the opposite direction.
    const isLast = index === split.children.length - 1
    shift(split, isLast ? index - 1 : index, isLast ? -payload.delta : payload.delta)
  }
  return undefined
}

function splitAt(draft: WindowDocument, id: string): Split {
  for (const { groups } of draft.desktops)
    for (const { root } of groups)
      for (const node of nodesIn(root)) if (node.id === id && node.kind === 'split') return node
  return refuse('invalid_command', `there is no split ${id}`, { next: command('layout get') })
}

/** The nearest split of this axis around a window, and the index of the child that contains the window. */
function splitAround(draft: WindowDocument, windowId: string, axis: Axis): { split: Split; index: number } {
  const found = holderOf(windowAt(draft, windowId).desktop, windowId)
  let child = found?.node
  while (found && child) {
    const parent = parentOf(found.group.root, child)
    if (parent?.axis === axis) return { split: parent, index: parent.children.indexOf(child) }
    child = parent
  }
  return refuse(
    'invalid_command',
    `window ${windowId} has nothing ${axis === 'horizontal' ? 'beside' : 'below or above'} it`,
  )
}

function shift(split: Split, boundary: number, delta: number): void {
  const before = split.weights[boundary]
  const after = split.weights[boundary + 1]
  if (before === undefined || after === undefined)
    refuse('invalid_command', `split ${split.id} has boundaries 0 to ${split.weights.length - 2}`)
  const both = before + after
  const least = Math.min(LEAST, both / 2)
  const wanted = Math.min(both - least, Math.max(least, before + delta))
  split.weights[boundary] = wanted
  split.weights[boundary + 1] = both - wanted
}

export const balance: Reducer<'layout.balance'> = (draft, { desktop_id, split_id }, { activeDesktop }) => {
  const splits =
    split_id !== undefined
      ? [splitAt(draft, split_id)]
      : chosenDesktop(draft, desktop_id, activeDesktop).groups.flatMap(({ root }) =>
          nodesIn(root).filter((node): node is Split => node.kind === 'split'),
        )
  for (const split of splits) split.weights = split.children.map(() => 1 / split.children.length)
  return undefined
}

export const replace: Reducer<'layout.replace'> = (draft, payload, { layout, mint }) => {
  if ('document' in payload) {
    const { document } = payload
    if (!isValid(document, draft.workspace_id)) {
      const diagnostics = diagnose(document, draft.workspace_id)
      return refuse('invalid_topology', summary(diagnostics), {
        diagnostics,
        next: command('layout validate', placeholder('file')),
      })
    }
    Object.assign(draft, structuredClone(document))
    return undefined
  }
  const saved = layout(payload.layout_id)
  if (!saved)
    return refuse('layout_not_found', `there is no layout ${payload.layout_id} for this workspace`, {
      next: command('layout list'),
    })
  Object.assign(draft, applyLayout(draft, saved, payload, mint))
  const [first] = draft.desktops
  return first ? { show: desktopAt(draft, first.id).id } : undefined
}
