import { turn } from '../../../../kernel/plugin.js'
import type { Scrubber } from '../redact/scrubber.js'

/**
 * The content of one file of a bundle. If it is too large, a list keeps its first items and a text keeps its end. Texts arrive
 * without secrets; those in data are removed during encoding.
 */
export type Content =
  | { readonly kind: 'json'; readonly value: unknown }
  | {
      readonly kind: 'list'
      readonly head: object
      readonly member: string
      readonly items: readonly unknown[]
      readonly more: boolean
    }
  | { readonly kind: 'text'; readonly text: string; readonly truncated: boolean }

/** The bytes of one file, and whether it was truncated. */
export interface Encoded {
  readonly bytes: Buffer
  readonly truncated: boolean
}

/** Most steps to shrink a value. */
const MOST_CUTS = 200

/** Encodes content without secrets, in at most `max` bytes; undefined if it cannot be shrunk that far. */
export async function encode(content: Content, scrubber: Scrubber, max: number): Promise<Encoded | undefined> {
  if (content.kind === 'text') {
    const bytes = Buffer.from(content.text)
    return { bytes: endOf(bytes, max), truncated: content.truncated || bytes.length > max }
  }
  if (content.kind === 'json') return shrunk(scrubber.data(content.value), max)
  const { head, member, items, more } = content
  const chosen: string[] = []
  let left = max - Buffer.byteLength(textOf({ ...head, truncated: true, [member]: [] }))
  for (const [n, item] of items.entries()) {
    if (n % 100 === 99) await turn()
    const text = JSON.stringify(scrubber.data(item))
    left -= Buffer.byteLength(text) + 4
    if (left < 0) break
    chosen.push(text)
  }
  const truncated = more || chosen.length < items.length
  const whole = textOf({ ...head, truncated, [member]: [] })
  const rows = chosen.length === 0 ? '[]' : `[\n    ${chosen.join(',\n    ')}\n  ]`
  return { bytes: Buffer.from(whole.replace(/\[\]\n\}\n$/, () => `${rows}\n}\n`)), truncated }
}

const textOf = (value: unknown) => `${JSON.stringify(value, undefined, 2)}\n`

/** The end of a text, from the start of a line. */
function endOf(bytes: Buffer, max: number): Buffer {
  if (bytes.length <= max) return bytes
  const end = bytes.subarray(bytes.length - max)
  return end.subarray(end.indexOf(10) + 1)
}

/** Halves the longest lists and texts of a value until it fits. */
function shrunk(value: unknown, max: number): Encoded | undefined {
  let current = value
  for (let cut = 0; cut < MOST_CUTS; cut++) {
    const bytes = Buffer.from(textOf(current))
    if (bytes.length <= max) return { bytes, truncated: cut > 0 }
    const cutAt = largest(current)
    if (cutAt === undefined) return undefined
    current = cutAt()
  }
  return undefined
}

/** Returns a function that halves the largest list or text of a value. */
function largest(root: unknown): (() => unknown) | undefined {
  let most = 1
  let best: { readonly at: readonly (string | number)[]; readonly half: unknown } | undefined
  const visit = (value: unknown, at: readonly (string | number)[]): void => {
    if (typeof value === 'string' && value.length > 1024 && value.length > most) {
      most = value.length
      best = { at, half: `${value.slice(0, value.length >> 1)}…` }
    } else if (Array.isArray(value)) {
      const size = value.length > 1 ? JSON.stringify(value).length : 0
      if (size > most) {
        most = size
        best = { at, half: value.slice(0, value.length >> 1) }
      }
      for (const [n, item] of value.entries()) if (typeof item === 'object') visit(item, [...at, n])
    } else if (typeof value === 'object' && value !== null)
      for (const [name, member] of Object.entries(value)) visit(member, [...at, name])
  }
  visit(root, [])
  const found = best
  return found && (() => replaced(root, found.at, found.half))
}

function replaced(root: unknown, [name, ...rest]: readonly (string | number)[], half: unknown): unknown {
  if (name === undefined) return half
  const next = replaced((root as Record<string | number, unknown>)[name], rest, half)
  return Array.isArray(root) ? root.map((item, n) => (n === name ? next : item)) : { ...(root as object), [name]: next }
}
