import { useRef, useState } from 'preact/hooks'
import { text } from '../../text.js'
import type { Actions, State } from './actions.js'
import { draggedWindow, type Edge, edgeAt } from './drag.js'
import type { Placing } from './floating.js'
import { Pane } from './pane.js'

const words = text.desktops

/** The choices for a new window's content; the sessions of the workspace come after them. */
export const choices: readonly { readonly title: string; readonly app: string; readonly pathname: string }[] = [
  { title: words.apps.attention, app: 'attention', pathname: '/' },
  { title: words.apps.sessions, app: 'sessions', pathname: '/' },
  { title: words.apps.work, app: 'work', pathname: '/' },
]

const DIRECTIONS: Readonly<Record<string, Edge>> = {
  ArrowLeft: 'left',
  ArrowRight: 'right',
  ArrowUp: 'top',
  ArrowDown: 'bottom',
}

/** The nearest window in a direction. */
function neighbour(from: HTMLElement, edge: Edge): HTMLElement | undefined {
  const own = from.getBoundingClientRect()
  const middle = (rect: DOMRect) => [rect.left + rect.width / 2, rect.top + rect.height / 2] as const
  const [x, y] = middle(own)
  const others = [...(from.closest('.canvas')?.querySelectorAll<HTMLElement>('.window') ?? [])].filter(
    one => one !== from,
  )
  const ranked = others.flatMap(one => {
    const [a, b] = middle(one.getBoundingClientRect())
    const [along, across] = edge === 'left' || edge === 'right' ? [a - x, Math.abs(b - y)] : [b - y, Math.abs(a - x)]
    const distance = edge === 'left' || edge === 'top' ? -along : along
    return distance > 1 ? [{ one, rank: distance + across * 2 }] : []
  })
  return ranked.sort((a, b) => a.rank - b.rank)[0]?.one
}

export const titleOf = (app: string, pathname: string): string =>
  words.apps[app as keyof typeof words.apps] ?? `${app} ${pathname}`

/** A window with its content. Its title is the handle for dragging. */
export function Window({
  id,
  workspace,
  state,
  actions,
  stack = [],
  placing,
}: {
  readonly id: string
  readonly workspace: string
  readonly state: State
  readonly actions: Actions
  /** The windows of a stack, with this one on top. */
  readonly stack?: readonly string[]
  /** Only for a floating window. */
  readonly placing?: Placing
}) {
  const host = useRef<HTMLElement>(null)
  const [edge, setEdge] = useState<Edge>()
  const [title, setTitle] = useState<string>()
  const window = state.windows[id]
  if (!window) return null
  const name = title ?? titleOf(window.app, window.route.pathname)
  const keyDown = (event: KeyboardEvent) => {
    const direction = DIRECTIONS[event.key]
    if (direction && placing && event.shiftKey) {
      event.preventDefault()
      placing.move(...stepTo(direction))
      return
    }
    if (direction && host.current) {
      event.preventDefault()
      const next = neighbour(host.current, direction)
      const target = next?.dataset.window
      if (!target) return
      if (event.shiftKey) void actions.run('window.move', { window_id: id, target_window_id: target, edge: direction })
      else next.querySelector<HTMLElement>('.window-title')?.focus()
      return
    }
    if (event.ctrlKey || event.metaKey || event.altKey) return
    const resize = { '+': STEP, '-': -STEP }[event.key]
    if (resize !== undefined && placing) placing.resize(resize, resize)
    else if (resize !== undefined) {
      // The axis with a neighbour.
      const axis =
        host.current && (neighbour(host.current, 'left') ?? neighbour(host.current, 'right'))
          ? 'horizontal'
          : 'vertical'
      void actions.run('layout.resize', { window_id: id, axis, delta: resize })
    } else if (event.key === 'f') void actions.run('window.toggle_floating', { window_id: id })
    else if (event.key === 'm' && placing)
      void actions.run('window.toggle_floating', { window_id: id, minimized: true }, words.wasMinimized)
    else if (event.key === 'z') void actions.run('window.zoom', { window_id: id })
    else if (event.key === 'Delete') void actions.run('window.close', { window_id: id })
    else if (event.key === 'u') void actions.run('layout.undo', {})
  }
  const drop = (event: DragEvent) => {
    event.preventDefault()
    const dragged = draggedWindow.value
    const at = edgeAt(event.currentTarget as Element, event)
    setEdge(undefined)
    draggedWindow.value = undefined
    if (dragged && dragged !== id)
      void actions.run('window.move', { window_id: dragged, target_window_id: id, edge: at })
  }
  return (
    <article
      ref={host}
      class={edge ? `window drop-${edge}` : 'window'}
      data-window={id}
      aria-label={name}
      onDragOver={event => {
        if (!draggedWindow.value || draggedWindow.value === id) return
        event.preventDefault()
        setEdge(edgeAt(event.currentTarget, event))
      }}
      onDragLeave={() => setEdge(undefined)}
      onDrop={drop}
    >
      {stack.length > 1 && (
        <ul class="stack-tabs" aria-label={words.stack}>
          {stack.map(one => (
            <li key={one}>
              <button
                type="button"
                class="quiet"
                aria-pressed={one === id}
                onClick={() => void actions.run('window.focus', { window_id: one })}
              >
                {titleOf(state.windows[one]?.app ?? '', state.windows[one]?.route.pathname ?? '')}
              </button>
            </li>
          ))}
        </ul>
      )}
      <header class="window-head">
        <button
          type="button"
          class="quiet window-title clip"
          draggable={!placing}
          aria-label={words.windowLabel(name)}
          onKeyDown={keyDown}
          onPointerDown={event => placing?.follow(event, 'move')}
          onDragStart={event => {
            draggedWindow.value = id
            event.dataTransfer?.setData('text/plain', id)
          }}
          onDragEnd={() => {
            draggedWindow.value = undefined
          }}
        >
          {name}
        </button>
        <button
          type="button"
          class="quiet"
          aria-label={words.floatLabel(name)}
          onClick={() => void actions.run('window.toggle_floating', { window_id: id })}
        >
          {window.placement === 'floating' ? words.tile : words.float}
        </button>
        {placing && (
          <button
            type="button"
            class="quiet"
            aria-label={words.minimizeLabel(name)}
            onClick={() =>
              void actions.run('window.toggle_floating', { window_id: id, minimized: true }, words.wasMinimized)
            }
          >
            {words.minimize}
          </button>
        )}
        <button
          type="button"
          class="quiet"
          aria-label={words.zoomLabel(name)}
          onClick={() => void actions.run('window.zoom', { window_id: id })}
        >
          {words.zoom}
        </button>
        <button
          type="button"
          class="quiet"
          aria-label={words.closeLabel(name)}
          onClick={() => void actions.run('window.close', { window_id: id })}
        >
          {text.close}
        </button>
      </header>
      <div class="window-body" tabIndex={0} role="region" aria-label={words.contentOf(name)}>
        <Pane workspace={workspace} app={window.app} pathname={window.route.pathname} setTitle={setTitle} />
      </div>
      {placing && (
        <button
          type="button"
          class="window-corner"
          aria-label={words.resizeLabel(name)}
          onPointerDown={event => placing.follow(event, 'resize')}
          onKeyDown={event => {
            const direction = DIRECTIONS[event.key]
            if (!direction) return
            event.preventDefault()
            placing.resize(...stepTo(direction))
          }}
        />
      )}
    </article>
  )
}

const STEP = 0.05

/** A step in a direction, as shares of the width and of the height. */
function stepTo(direction: Edge): readonly [number, number] {
  if (direction === 'left' || direction === 'right') return [direction === 'left' ? -STEP : STEP, 0]
  return [0, direction === 'top' ? -STEP : STEP]
}
