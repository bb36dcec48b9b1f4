import type {
  Desktop as DesktopWire,
  LayoutDocument,
  LayoutGroup,
  Overrides,
  Rect,
  Window as WindowWire,
} from '../../../../schemas/window-manager.js'

export type { LayoutDocument, Overrides, Rect }

/** Version of layout documents. */
export const DOCUMENT_VERSION = 2
/** A frame that covers the whole desktop. */
export const WHOLE: Rect = { x: 0, y: 0, width: 1, height: 1 }
/** Default frame of a floating window. */
export const FLOATING: Rect = { x: 0.2, y: 0.2, width: 0.6, height: 0.6 }

export type Axis = 'horizontal' | 'vertical'

export interface Leaf {
  id: string
  kind: 'leaf'
  window_id: string
}
/** Children side by side (horizontal) or one above the other; the weights are their shares and add up to 1. */
export interface Split {
  id: string
  kind: 'split'
  axis: Axis
  children: Node[]
  weights: number[]
}
/** Windows on top of each other; one is visible. */
export interface Stack {
  id: string
  kind: 'stack'
  window_ids: string[]
  active_id: string
}
export type Node = Leaf | Split | Stack

export type Group = Omit<LayoutGroup, 'root'> & { root: Node }
export type Desktop = Omit<DesktopWire, 'groups' | 'purpose'> & { purpose: 'standard' | 'focus'; groups: Group[] }
export type Window = Omit<WindowWire, 'placement'> & { placement: 'tiled' | 'stacked' | 'floating' }

/** A document that satisfies every invariant: `diagnose` finds no problem. */
export interface WindowDocument {
  version: number
  workspace_id: string
  desktops: Desktop[]
  windows: Record<string, Window>
  overrides: Overrides
}

/** The document of a workspace before its first command; always the same. */
export function emptyDocument(workspaceId: string): WindowDocument {
  const first: Desktop = { id: 'desktop-1', name: 'Desktop 1', order: 0, purpose: 'standard', floating: [], groups: [] }
  return { version: DOCUMENT_VERSION, workspace_id: workspaceId, desktops: [first], windows: {}, overrides: {} }
}

/** Looks up an own property only: callers choose the ids, and `constructor` is a valid one. */
export const windowOf = <W>({ windows }: { readonly windows: Readonly<Record<string, W>> }, id: string) =>
  Object.hasOwn(windows, id) ? windows[id] : undefined

/** Windows in a node, in reading order. */
export function windowsIn(node: Node): string[] {
  switch (node.kind) {
    case 'leaf':
      return [node.window_id]
    case 'stack':
      return [...node.window_ids]
    case 'split':
      return node.children.flatMap(windowsIn)
  }
}

/** A node and all of its descendants, parents first. */
export function nodesIn(node: Node): Node[] {
  return node.kind === 'split' ? [node, ...node.children.flatMap(nodesIn)] : [node]
}

/** Windows of a desktop: tiled ones first, then floating ones from back to front. */
export const windowsOn = (desktop: Desktop) => [
  ...desktop.groups.flatMap(group => windowsIn(group.root)),
  ...desktop.floating,
]
