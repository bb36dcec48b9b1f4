import { signal } from '@preact/signals'

/** The window that is dragged; a drop reads it here, because its data is not readable while it is dragged over something. */
export const draggedWindow = signal<string | undefined>(undefined)

export type Edge = 'left' | 'right' | 'top' | 'bottom' | 'center'

/** Share of a window at each edge that places a window beside it; the rest puts it on top. */
const BAND = 0.28

/** The edge of an element that a point is nearest to. */
export function edgeAt(element: Element, { clientX, clientY }: { clientX: number; clientY: number }): Edge {
  const { left, top, width, height } = element.getBoundingClientRect()
  const [x, y] = [(clientX - left) / width, (clientY - top) / height]
  const distances = { left: x, right: 1 - x, top: y, bottom: 1 - y }
  const [edge, distance] = Object.entries(distances).reduce((a, b) => (b[1] < a[1] ? b : a))
  return distance < BAND ? (edge as Edge) : 'center'
}
