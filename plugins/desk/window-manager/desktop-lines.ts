import type { LayoutNode, WindowManagerState } from '../../../schemas/window-manager.js'
import { windowOf } from './document/document.js'

/** A line for people. */
export interface Line {
  readonly text: string
  readonly style?: 'bold' | 'dim'
}

/** Desktops and their windows as a tree. `shown` is the caller's current desktop. */
export function desktopLines(state: WindowManagerState, shown?: string): Line[] {
  return state.desktops.flatMap(desktop => {
    const marks = [desktop.id, desktop.purpose === 'focus' ? 'focus' : '', desktop.id === shown ? 'shown' : '']
    const label = (id: string) => windowLabel(state, id, desktop.focus_owner ?? undefined)
    const tiled = desktop.groups.flatMap(group => branch(group.root, '  ', label))
    const floating = desktop.floating.map(id => `  ~ ${label(id)}`)
    const lines = [...tiled, ...floating]
    return [
      { text: `${desktop.name}  (${marks.filter(Boolean).join(', ')})`, style: 'bold' as const },
      ...(lines.length > 0 ? lines.map(text => ({ text })) : [{ text: '  empty', style: 'dim' as const }]),
    ]
  })
}

function branch(node: LayoutNode, indent: string, label: (id: string) => string): string[] {
  if (node.kind === 'leaf') return [`${indent}${label(node.window_id ?? '')}`]
  if (node.kind === 'stack') {
    const lines = (node.window_ids ?? []).map(id => `${indent}  ${id === node.active_id ? '▸' : ' '} ${label(id)}`)
    return [`${indent}stack`, ...lines]
  }
  const head = `${indent}${node.axis === 'horizontal' ? 'beside each other' : 'below each other'} (${parts(node)}; ${node.id})`
  return [head, ...(node.children ?? []).flatMap(child => branch(child, `${indent}  `, label))]
}

const parts = ({ weights = [] }: LayoutNode) => weights.map(weight => `${Math.round(weight * 100)}%`).join(' ')

function windowLabel(state: WindowManagerState, id: string, focused: string | undefined): string {
  const window = windowOf(state, id)
  const marks = [id === focused ? '*' : '', window?.minimized ? 'minimized' : ''].filter(Boolean).join(' ')
  const route = window && window.route.pathname !== '/' ? ` ${window.route.pathname}` : ''
  return `${window?.app ?? '?'}${route}  ${id}${marks && ` ${marks}`}`
}
