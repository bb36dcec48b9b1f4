import { useEffect, useRef, useState } from 'preact/hooks'
import { text } from '../../text.js'
import type { Actions, State } from './actions.js'
import { edgeAt } from './drag.js'
import { Window } from './window.js'

export type Rect = State['windows'][string]['floating_rect']

/** Callbacks that move and resize a floating window, in shares of the desktop. */
export interface Placing {
  /** Starts a drag. */
  readonly follow: (event: PointerEvent, how: 'move' | 'resize') => void
  readonly move: (x: number, y: number) => void
  readonly resize: (width: number, height: number) => void
}

const WHOLE: Rect = { x: 0, y: 0, width: 1, height: 1 }
const SMALLEST = 0.1
/** Key presses within this time form one command, which one undo reverts. */
const GATHER_MS = 300
/** Distance in pixels after which a press becomes a drag. */
const SLACK = 3

const within = (value: number, least: number, most: number) => Math.min(Math.max(value, least), Math.max(least, most))
const rounded = (value: number) => Math.round(value * 10_000) / 10_000

/** The nearest rectangle within the desktop. */
export function fitted({ x, y, width, height }: Rect): Rect {
  const size = { width: rounded(within(width, SMALLEST, 1)), height: rounded(within(height, SMALLEST, 1)) }
  return { x: rounded(within(x, 0, 1 - size.width)), y: rounded(within(y, 0, 1 - size.height)), ...size }
}

export const frameOf = ({ x, y, width, height }: Rect) => {
  const percent = (share: number) => `${share * 100}%`
  return { '--left': percent(x), '--top': percent(y), '--width': percent(width), '--height': percent(height) }
}

/** A floating window. During a drag it follows the pointer; the daemon receives only the final position. */
export function Floating({
  id,
  order,
  workspace,
  state,
  actions,
}: {
  readonly id: string
  /** Position among the floating windows, from back to front. */
  readonly order: number
  readonly workspace: string
  readonly state: State
  readonly actions: Actions
}) {
  const host = useRef<HTMLDivElement>(null)
  const stored = state.windows[id]?.floating_rect ?? WHOLE
  const [draft, setDraft] = useState<Rect>()
  const latest = useRef({ stored, draft, actions })
  latest.current = { ...latest.current, stored, actions }
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined)
  const stop = useRef<(() => void) | undefined>(undefined)
  const show = (rect: Rect | undefined) => {
    latest.current.draft = rect
    setDraft(rect)
  }
  const commit = async (said: string) => {
    clearTimeout(timer.current)
    timer.current = undefined
    const { draft: rect, actions: now } = latest.current
    if (!rect) return
    await now.run('window.move', { window_id: id, floating_rect: rect }, said)
    // A later change of the draft sends its own command.
    if (latest.current.draft === rect) show(undefined)
  }
  const step = (change: (rect: Rect) => Rect, said: string) => {
    show(fitted(change(latest.current.draft ?? latest.current.stored)))
    clearTimeout(timer.current)
    timer.current = setTimeout(() => void commit(said), GATHER_MS)
  }
  useEffect(
    () => () => {
      stop.current?.()
      if (timer.current !== undefined) void commit('')
    },
    [],
  )
  const follow = (event: PointerEvent, how: 'move' | 'resize') => {
    const desktop = host.current?.parentElement?.getBoundingClientRect()
    // On narrow screens the windows form a column and cannot be dragged.
    if (event.button !== 0 || !desktop || !host.current || getComputedStyle(host.current).position !== 'absolute')
      return
    const from = latest.current.draft ?? latest.current.stored
    let hasMoved = false
    const over = new AbortController()
    const end = () => {
      over.abort()
      stop.current = undefined
    }
    stop.current = end
    const { signal } = over
    const moved = ({ clientX, clientY }: PointerEvent) => {
      const [right, down] = [clientX - event.clientX, clientY - event.clientY]
      hasMoved ||= Math.abs(right) > SLACK || Math.abs(down) > SLACK
      if (!hasMoved) return
      const [x, y] = [right / desktop.width, down / desktop.height]
      show(
        how === 'move'
          ? fitted({ ...from, x: from.x + x, y: from.y + y })
          : fitted({
              ...from,
              width: Math.min(from.width + x, 1 - from.x),
              height: Math.min(from.height + y, 1 - from.y),
            }),
      )
    }
    const dropped = (at: PointerEvent) => {
      end()
      if (!hasMoved) return
      const target = how === 'move' ? targetAt(at, host.current) : undefined
      if (!target) return void commit(how === 'move' ? text.desktops.moved : text.desktops.resized)
      show(undefined)
      void latest.current.actions.run('window.move', { window_id: id, ...target })
    }
    addEventListener('pointermove', moved, { signal })
    addEventListener('pointerup', dropped, { signal })
    const cancel = () => {
      end()
      show(undefined)
    }
    addEventListener('pointercancel', cancel, { signal })
    addEventListener('keydown', ({ key }) => key === 'Escape' && cancel(), { signal })
    // Otherwise the drag would select the text of other windows.
    event.preventDefault()
    ;(event.currentTarget as HTMLElement).focus()
  }
  const placing: Placing = {
    follow,
    move: (x, y) => step(rect => ({ ...rect, x: rect.x + x, y: rect.y + y }), text.desktops.moved),
    resize: (width, height) =>
      step(
        rect => ({
          ...rect,
          width: Math.min(rect.width + width, 1 - rect.x),
          height: Math.min(rect.height + height, 1 - rect.y),
        }),
        text.desktops.resized,
      ),
  }
  return (
    <div ref={host} class="group floating" style={{ ...frameOf(draft ?? stored), '--order': order }}>
      <Window id={id} workspace={workspace} state={state} actions={actions} placing={placing} />
    </div>
  )
}

/** The desktop under the pointer; with Shift, the window that the dragged one is placed beside or stacked on. */
function targetAt({ clientX, clientY, shiftKey }: PointerEvent, own: Element | null) {
  const below = document.elementsFromPoint(clientX, clientY).filter(one => !own?.contains(one))
  const desktop = below.map(one => one.closest<HTMLElement>('[data-desktop]')?.dataset.desktop).find(Boolean)
  if (desktop) return { desktop_id: desktop }
  const window = below.map(one => one.closest<HTMLElement>('[data-window]')).find(Boolean)
  if (!shiftKey || !window) return undefined
  return { target_window_id: window.dataset.window, edge: edgeAt(window, { clientX, clientY }) }
}
