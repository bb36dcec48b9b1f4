import { signal } from '@preact/signals'

/** The dragged window. The data of a drag event cannot be read before the drop. */
export const draggedWindow = signal<string | undefined>(undefined)

export type Edge = 'left' | 'right' | 'top' | 'bottom' | 'center'

/** The share of a window at each edge where a drop places the other window beside it; elsewhere, a drop stacks them. */
const BAND = 0.28

/** The edge of an element that is nearest to the pointer. */
export function edgeAt(element: Element, { clientX, clientY }: { clientX: number; clientY: number }): Edge {
  const { left, top, width, height } = element.getBoundingClientRect()
  const [x, y] = [(clientX - left) / width, (clientY - top) / height]
  const distances = { left: x, right: 1 - x, top: y, bottom: 1 - y }
  const [edge, distance] = Object.entries(distances).reduce((a, b) => (b[1] < a[1] ? b : a))
  return distance < BAND ? (edge as Edge) : 'center'
}
