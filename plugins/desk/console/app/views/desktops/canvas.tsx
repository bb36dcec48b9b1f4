import { useEffect, useRef } from 'preact/hooks'
import { text } from '../../text.js'
import { Empty } from '../../ui/parts.js'
import type { Actions, Desktop, State } from './actions.js'
import { Floating, frameOf } from './floating.js'
import { Window } from './window.js'

type Node = Desktop['groups'][number]['root']
const words = text.desktops

interface Shown {
  readonly workspace: string
  readonly state: State
  readonly actions: Actions
}

/**
 * A desktop: its groups of tiled windows, and the floating windows in front of them. On narrow screens, all windows form one
 * column.
 */
export function Canvas({ desktop, ...shown }: Shown & { readonly desktop: Desktop }) {
  const { state } = shown
  const floating = desktop.floating.filter(id => state.windows[id] && !state.windows[id].minimized)
  const minimized = desktop.floating.filter(id => state.windows[id]?.minimized)
  return (
    <div class="canvas" role="region" aria-label={desktop.name} tabIndex={0}>
      {desktop.groups.length + desktop.floating.length === 0 && <Empty>{words.none}</Empty>}
      {desktop.groups.map(({ id, frame, root }) => (
        <div key={id} class="group" style={frameOf(frame)}>
          <NodeOf node={root} {...shown} />
        </div>
      ))}
      {[...floating].sort().map(id => (
        // The element order never changes and a style sets the position, because a moved element loses the focus.
        <Floating key={id} id={id} order={floating.indexOf(id) + 1} {...shown} />
      ))}
      {minimized.length > 0 && (
        <ul class="minimized" aria-label={words.minimized}>
          {minimized.map(id => (
            <li key={id}>
              <button type="button" onClick={() => void shown.actions.run('window.focus', { window_id: id })}>
                {state.windows[id]?.app}
              </button>
            </li>
          ))}
        </ul>
      )}
    </div>
  )
}

function NodeOf({ node, ...shown }: Shown & { readonly node: Node }) {
  if (node.kind === 'leaf') return <Window id={node.window_id ?? ''} {...shown} />
  if (node.kind === 'stack') {
    const ids = node.window_ids ?? []
    const active = node.active_id ?? ids[0] ?? ''
    return <Window key={active} id={active} stack={ids} {...shown} />
  }
  const children = node.children ?? []
  const isRow = node.axis === 'horizontal'
  return (
    <div class={isRow ? 'split row' : 'split column'}>
      {children.flatMap((child, n) => [
        ...(n === 0 ? [] : [<Boundary key={`${node.id} ${n}`} split={node} index={n - 1} actions={shown.actions} />]),
        <div key={child.id} class="part" style={{ flexGrow: node.weights?.[n] ?? 1 }}>
          <NodeOf node={child} {...shown} />
        </div>,
      ])}
    </div>
  )
}

const STEP = 0.05

/** The boundary between the two parts of a split. The pointer and the arrow keys move it. */
function Boundary({
  split,
  index,
  actions,
}: {
  readonly split: Node
  readonly index: number
  readonly actions: Actions
}) {
  const host = useRef<HTMLDivElement>(null)
  const from = useRef<number | undefined>(undefined)
  const isRow = split.axis === 'horizontal'
  const resize = (delta: number) => {
    if (Math.abs(delta) > 0.005) void actions.run('layout.resize', { split_id: split.id, boundary_index: index, delta })
  }
  const position = (event: PointerEvent) => (isRow ? event.clientX : event.clientY)
  useEffect(() => {
    const { current } = host
    if (!current) return
    const up = (event: PointerEvent) => {
      if (from.current === undefined) return
      const { width, height } = current.parentElement?.getBoundingClientRect() ?? { width: 1, height: 1 }
      const delta = (position(event) - from.current) / (isRow ? width : height)
      from.current = undefined
      resize(delta)
    }
    addEventListener('pointerup', up)
    return () => removeEventListener('pointerup', up)
  })
  const share = (split.weights ?? []).slice(0, index + 1).reduce((sum, weight) => sum + weight, 0)
  return (
    <div
      ref={host}
      class="boundary"
      role="separator"
      tabIndex={0}
      aria-label={words.boundary}
      aria-orientation={isRow ? 'vertical' : 'horizontal'}
      aria-valuenow={Math.round(share * 100)}
      aria-valuemin={0}
      aria-valuemax={100}
      onPointerDown={event => {
        event.preventDefault()
        from.current = position(event)
      }}
      onKeyDown={event => {
        const step = { ArrowLeft: -STEP, ArrowUp: -STEP, ArrowRight: STEP, ArrowDown: STEP }[event.key]
        if (step === undefined) return
        event.preventDefault()
        resize(step)
      }}
    />
  )
}
