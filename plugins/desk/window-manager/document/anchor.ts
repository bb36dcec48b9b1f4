import {
  type Desktop,
  type Node,
  nodesIn,
  type Rect,
  type Split,
  type Window,
  type WindowDocument,
  windowsIn,
} from './document.js'
import { isNormalised, overlaps } from './topology.js'
import { attach, detach, holderOf, insert, type Mint, parentOf, replaced, tile } from './tree.js'

/** Bounds for the share of a split that a restored window gets, even if its anchor has another value. */
const [LEAST, MOST] = [0.05, 0.95]

type Anchor = NonNullable<Window['return_anchor']>

/**
 * The position of a tiled window, so that it can return there. Its source group contains only the surrounding stack or split.
 * `revision` is that of the document.
 */
export function anchorOf(window: Window, desktop: Desktop, revision: number): Anchor | undefined {
  const found = holderOf(desktop, window.id)
  if (!found) return undefined
  const { group, node } = found
  const parent = parentOf(group.root, node)
  const index = parent?.children.indexOf(node) ?? 0
  const sibling = parent?.children[index === 0 ? 1 : index - 1]
  const near = node.kind === 'stack' ? node : sibling
  const root: Node = node.kind === 'stack' || !parent ? node : { ...parent, children: [] }
  return {
    desktop_id: desktop.id,
    source_revision: revision,
    group_id: group.id,
    source_group: structuredClone({ id: group.id, frame: group.frame, root }),
    ...(parent && { parent_split_id: parent.id, child_index: index, weight: parent.weights[index] }),
    neighbor_ids: near ? windowsIn(near).filter(id => id !== window.id) : [],
  }
}

/** Tiles a floating window at its former position, or wherever there is space. */
export function putBack(draft: WindowDocument, window: Window, desktop: Desktop, mint: Mint): void {
  const anchor = window.return_anchor
  detach(desktop, window.id)
  window.return_anchor = undefined
  const home = draft.desktops.find(({ id }) => id === anchor?.desktop_id) ?? desktop
  if (!anchor || !restored(draft, home, window.id, anchor, mint)) tile(home, window.id, mint)
  window.desktop_id = home.id
}

/** Restores a window to its former split, next to its former neighbors, or as its own group. False if none of these exist. */
function restored(draft: WindowDocument, home: Desktop, id: string, anchor: Anchor, mint: Mint): boolean {
  const { source_group: source, parent_split_id, child_index, weight, neighbor_ids = [] } = anchor
  const [first] = neighbor_ids.filter(other => holderOf(home, other))
  if (source?.root.kind === 'stack' && first !== undefined) {
    attach(home, id, first, 'center', mint)
    return true
  }
  const leaf: Node = { id: mint('nd'), kind: 'leaf', window_id: id }
  const part = Math.min(MOST, Math.max(LEAST, weight ?? 0.5))
  const isParent = (node: Node): node is Split => node.kind === 'split' && node.id === parent_split_id
  const split = home.groups.flatMap(({ root }) => nodesIn(root)).find(isParent)
  if (split) {
    insert(split, child_index ?? 0, leaf, part)
    return true
  }
  const group = first === undefined ? undefined : holderOf(home, first)?.group
  if (group) {
    // The smallest node with all former neighbors: if their split was removed, one of its children replaced it.
    const there = neighbor_ids.filter(other => windowsIn(group.root).includes(other))
    const around = nodesIn(group.root).filter(node => there.every(other => windowsIn(node).includes(other)))
    const node = around.at(-1) ?? group.root
    const axis = source?.root.axis === 'vertical' ? 'vertical' : 'horizontal'
    const pair: Split = { id: mint('nd'), kind: 'split', axis, children: [node], weights: [1] }
    insert(pair, child_index === 0 ? 0 : 1, leaf, part)
    group.root = replaced(group.root, node, pair)
    return true
  }
  if (!source || !isFree(home, source.frame)) return false
  const isTaken = draft.desktops.some(({ groups }) => groups.some(other => other.id === source.id))
  home.groups.push({ id: isTaken ? mint('grp') : source.id, frame: source.frame, root: leaf })
  return true
}

const isFree = ({ groups }: Desktop, frame: Rect) =>
  isNormalised(frame) && !groups.some(group => overlaps(group.frame, frame))
