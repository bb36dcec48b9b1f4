import type { WindowChanges } from '../../../../schemas/window-manager.js'
import { type Desktop, type Node, nodesIn, type Window, type WindowDocument, windowOf } from './document.js'
import { difference } from './history.js'

/** Ids of desktops, groups, nodes and windows that differ between two documents or exist in only one. */
export function changesBetween(before: WindowDocument, after: WindowDocument): WindowChanges {
  const delta = difference(before, after)
  const old = partsOf(delta.before.desktops as Desktop[])
  const fresh = partsOf(delta.after.desktops as Desktop[])
  const listed = (name: keyof WindowChanges, ids: Iterable<string>) => {
    const list = [...new Set(ids)]
    return list.length > 0 ? { [name]: list } : {}
  }
  return {
    ...listed(
      'desktop_ids',
      [...delta.before.desktops, ...delta.after.desktops].map(({ id }) => id),
    ),
    ...listed('group_ids', differing(old.groups, fresh.groups)),
    ...listed('node_ids', differing(old.nodes, fresh.nodes)),
    ...listed('window_ids', [...Object.keys(delta.before.windows), ...Object.keys(delta.after.windows)]),
  }
}

/** Groups and nodes by id, each as text without its children. */
function partsOf(desktops: readonly Desktop[]): { groups: Map<string, string>; nodes: Map<string, string> } {
  const groups = new Map<string, string>()
  const nodes = new Map<string, string>()
  const shallow = (node: Node) =>
    node.kind === 'split' ? { ...node, children: node.children.map(({ id }) => id) } : node
  for (const desktop of desktops)
    for (const group of desktop.groups) {
      groups.set(group.id, JSON.stringify([desktop.id, group.frame, group.root.id]))
      for (const node of nodesIn(group.root)) nodes.set(node.id, JSON.stringify(shallow(node)))
    }
  return { groups, nodes }
}

function differing(a: ReadonlyMap<string, string>, b: ReadonlyMap<string, string>): string[] {
  return [...new Set([...a.keys(), ...b.keys()])].filter(id => a.get(id) !== b.get(id))
}

/** Affected ids by the name of the event, without `window_manager.`. */
export type Happenings = Readonly<Record<HappeningName, readonly string[]>>
export type HappeningName =
  | 'desktop.created'
  | 'desktop.deleted'
  | 'window.opened'
  | 'window.closed'
  | 'window.moved'
  | 'stack.grouped'
  | 'stack.ungrouped'
  | 'stack.activated'

/** Derives events from two documents, independent of the command: undoing a close opens a window like any other command. */
export function happenings(before: WindowDocument, after: WindowDocument): Happenings {
  const ids = (document: WindowDocument) => document.desktops.map(desktop => desktop.id)
  const both = Object.entries(after.windows).flatMap(([id, window]) => {
    const old = windowOf(before, id)
    return old ? [{ id, old, window }] : []
  })
  const became = (placed: (window: Window, old: Window) => boolean) =>
    both.filter(({ window, old }) => placed(window, old)).map(({ id }) => id)
  const active = activeWindows(before)
  return {
    'desktop.created': ids(after).filter(id => !ids(before).includes(id)),
    'desktop.deleted': ids(before).filter(id => !ids(after).includes(id)),
    'window.opened': Object.keys(after.windows).filter(id => !windowOf(before, id)),
    'window.closed': Object.keys(before.windows).filter(id => !windowOf(after, id)),
    'window.moved': became((now, old) => whereabouts(now) !== whereabouts(old)),
    'stack.grouped': became((now, old) => now.placement === 'stacked' && old.placement !== 'stacked'),
    'stack.ungrouped': became((now, old) => now.placement !== 'stacked' && old.placement === 'stacked'),
    'stack.activated': [...activeWindows(after)].filter(id => !active.has(id)),
  }
}

const whereabouts = ({ desktop_id, placement, floating_rect }: Window) =>
  JSON.stringify([desktop_id, placement, placement === 'floating' ? floating_rect : null])

function activeWindows({ desktops }: WindowDocument): Set<string> {
  const nodes = desktops.flatMap(({ groups }) => groups.flatMap(({ root }) => nodesIn(root)))
  return new Set(nodes.flatMap(node => (node.kind === 'stack' ? [node.active_id] : [])))
}
