import type { Axis, Desktop, Group, Node, Split, Stack, WindowDocument } from './document.js'
import { nodesIn, WHOLE, windowOf, windowsIn, windowsOn } from './document.js'

/** A side of a window, or its center for a position on top of it. */
export type Edge = 'left' | 'right' | 'top' | 'bottom' | 'center'
/** Creates ids, such as `grp_…` and `nd_…`. */
export type Mint = (prefix: string) => string

const axisOf = (edge: Exclude<Edge, 'center'>): Axis =>
  edge === 'left' || edge === 'right' ? 'horizontal' : 'vertical'

/** The node that contains a window: a leaf or a stack. */
export function holderOf(desktop: Desktop, windowId: string): { group: Group; node: Node } | undefined {
  for (const group of desktop.groups)
    for (const node of nodesIn(group.root))
      if (node.kind !== 'split' && windowsIn(node).includes(windowId)) return { group, node }
  return undefined
}

/** Removes a window from its position. The rest is normalised, so that an inserted window gets its share of the whole. */
export function detach(desktop: Desktop, windowId: string): void {
  desktop.floating = desktop.floating.filter(id => id !== windowId)
  for (const group of desktop.groups) {
    const root = without(group.root, windowId)
    if (root) group.root = normalised(root)
    else desktop.groups = desktop.groups.filter(other => other !== group)
  }
}

function without(node: Node, windowId: string): Node | undefined {
  if (node.kind === 'leaf') return node.window_id === windowId ? undefined : node
  if (node.kind === 'stack') {
    const left = node.window_ids.filter(id => id !== windowId)
    return left.length === 0 ? undefined : { ...node, window_ids: left }
  }
  const kept = node.children.flatMap((child, i) => {
    const rest = without(child, windowId)
    return rest ? [{ rest, weight: node.weights[i] ?? 0 }] : []
  })
  if (kept.length === 0) return undefined
  return { ...node, children: kept.map(({ rest }) => rest), weights: kept.map(({ weight }) => weight) }
}

/** Puts a window next to another tiled window, or on top of it. */
export function attach(desktop: Desktop, windowId: string, targetId: string, edge: Edge, mint: Mint): void {
  const found = holderOf(desktop, targetId)
  if (!found) {
    tile(desktop, windowId, mint)
    return
  }
  const { group, node } = found
  const leaf: Node = { id: mint('nd'), kind: 'leaf', window_id: windowId }
  if (edge === 'center') {
    const stack: Stack = {
      id: node.kind === 'stack' ? node.id : mint('nd'),
      kind: 'stack',
      window_ids: [...windowsIn(node), windowId],
      active_id: windowId,
    }
    group.root = replaced(group.root, node, stack)
    return
  }
  const axis = axisOf(edge)
  const first = edge === 'left' || edge === 'top'
  const parent = parentOf(group.root, node)
  if (parent?.axis === axis) {
    // Each sibling gives up the same share; halving one sibling would make the tenth window too small to see.
    insert(parent, parent.children.indexOf(node) + (first ? 0 : 1), leaf, 1 / (parent.children.length + 1))
    return
  }
  const children = first ? [leaf, node] : [node, leaf]
  group.root = replaced(group.root, node, { id: mint('nd'), kind: 'split', axis, children, weights: [0.5, 0.5] })
}

/** Inserts a node among the children of a split, at an index and with a share of the whole. */
export function insert(split: Split, at: number, node: Node, part: number): void {
  split.children.splice(at, 0, node)
  split.weights = split.weights.map(weight => weight * (1 - part))
  split.weights.splice(at, 0, part)
}

/** The split with this node as a child. */
export function parentOf(root: Node, node: Node): Split | undefined {
  return nodesIn(root).find((other): other is Split => other.kind === 'split' && other.children.includes(node))
}

/** Tiles a window next to the focused window, else at the end of the last group, else in its own group. */
export function tile(desktop: Desktop, windowId: string, mint: Mint, edge: Edge = 'right'): void {
  const focused = desktop.focus_owner ?? ''
  const last = desktop.groups.at(-1)
  const target = holderOf(desktop, focused) ? focused : last && windowsIn(last.root).at(-1)
  if (target !== undefined) {
    attach(desktop, windowId, target, edge, mint)
    return
  }
  const root: Node = { id: mint('nd'), kind: 'leaf', window_id: windowId }
  desktop.groups.push({ id: mint('grp'), frame: { ...WHOLE }, root })
}

/** A tree with one node replaced. */
export function replaced(root: Node, old: Node, fresh: Node): Node {
  if (root === old) return fresh
  if (root.kind !== 'split') return root
  return { ...root, children: root.children.map(child => replaced(child, old, fresh)) }
}

/**
 * A tree in normal form: no split with one child, no nested split of the same axis, no stack of one window, weights that add up to
 * 1.
 */
function normalised(node: Node): Node {
  if (node.kind === 'leaf') return node
  if (node.kind === 'stack') {
    const [only] = node.window_ids
    if (node.window_ids.length === 1 && only !== undefined) return { id: node.id, kind: 'leaf', window_id: only }
    return node.window_ids.includes(node.active_id) ? node : { ...node, active_id: only ?? '' }
  }
  const parts = node.children.flatMap((child, i) => {
    const weight = node.weights[i] ?? 0
    const part = normalised(child)
    if (part.kind !== 'split' || part.axis !== node.axis) return [{ part, weight }]
    return part.children.map((inner, k) => ({ part: inner, weight: weight * (part.weights[k] ?? 0) }))
  })
  const [first] = parts
  if (parts.length === 1 && first) return first.part
  return { ...node, children: parts.map(({ part }) => part), weights: shares(parts.map(({ weight }) => weight)) }
}

/** Weights scaled to a sum of 1. Left unchanged if they already are, to avoid rounding changes. */
function shares(weights: readonly number[]): number[] {
  const total = weights.reduce((sum, weight) => sum + weight, 0)
  return Math.abs(total - 1) < 1e-9 ? [...weights] : weights.map(weight => weight / total)
}

/** Updates the parts of a draft that depend on window positions: order, placement, desktop, focus. */
export function settle(document: WindowDocument): void {
  for (const [index, desktop] of document.desktops.entries()) {
    desktop.order = index
    for (const group of desktop.groups) {
      group.root = normalised(group.root)
      for (const node of nodesIn(group.root)) {
        if (node.kind === 'split') continue
        const placement = node.kind === 'leaf' ? 'tiled' : 'stacked'
        for (const id of windowsIn(node)) Object.assign(windowOf(document, id) ?? {}, { placement, minimized: false })
      }
    }
    for (const id of desktop.floating) Object.assign(windowOf(document, id) ?? {}, { placement: 'floating' })
    const members = windowsOn(desktop)
    for (const id of members) Object.assign(windowOf(document, id) ?? {}, { desktop_id: desktop.id })
    if (desktop.focus_owner && !members.includes(desktop.focus_owner)) desktop.focus_owner = members.at(-1) ?? null
  }
}
