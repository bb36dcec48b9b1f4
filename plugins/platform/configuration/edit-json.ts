import { isDeepStrictEqual } from 'node:util'
import type { Node } from 'jsonc-parser'
import { type Member, membersOf, plain, treeOf } from './jsonc.js'

// Edits JSON with comments as a person would: all comments, the order, the indentation and everything else stay. The edits of the
// parser's package would reformat the surroundings of a change, and move or drop its comments.

/**
 * Limit for the product of the lengths of text and value. Beyond it a value is replaced whole, since editing each member reads the
 * whole text.
 */
const MOST_WORK = 2 ** 24

/**
 * Sets the value at a path. An existing object is changed member by member, unless it is large.
 * @param text JSON with comments, an object or nothing
 * @param keys parts of the path; the text may write several of them as one key, joined by dots
 */
export function setAt(text: string, keys: readonly string[], value: unknown): string {
  const root = treeOf(text)
  if (!root) {
    const gap = text === '' || text.endsWith('\n') ? '' : '\n'
    return `${text}${gap}${print(nested(keys, value), '', layoutOf(text))}\n`
  }
  const { object, missing, member } = locate(root, keys)
  if (!member) return insert(text, object, missing[0] ?? '', nested(missing.slice(1), value))
  const before = plain(member.value)
  if (isDeepStrictEqual(before, value)) return text
  const work = text.length * JSON.stringify(value).length
  if (isObject(before) && isObject(value) && work < MOST_WORK) {
    const gone = Object.keys(before).filter(key => !Object.hasOwn(value, key))
    const set = Object.entries(value).reduce((rest, [key, one]) => setAt(rest, [...keys, key], one), text)
    return gone.reduce((rest, key) => removeAt(rest, [...keys, key]), set)
  }
  const { offset, length } = member.value
  const printed = print(value, indentOf(text, offset), layoutOf(text))
  return text.slice(0, offset) + printed + text.slice(offset + length)
}

/** Removes a path; its comments stay. */
export function removeAt(text: string, keys: readonly string[]): string {
  const root = treeOf(text)
  if (!root) return text
  const { object, member } = locate(root, keys)
  if (!member) return text
  const { node } = member
  const end = node.offset + node.length
  const siblings = membersOf(object)
  const at = siblings.findIndex(sibling => sibling.node === node)
  const before = siblings[at - 1]?.node
  const comma = commaIn(text, end, endOf(object))
  // After the last member the comma before it is removed.
  const other = comma === undefined && before ? commaIn(text, before.offset + before.length, node.offset) : comma
  const own: Range = [node.offset, end]
  if (other === undefined) return withoutGap(cut(text, ...own), node.offset)
  const its: Range = [other, other + 1]
  // The later cut first, since it does not move the earlier one.
  if (other >= end) return withoutGap(cut(cut(text, ...its), ...own), node.offset)
  return withoutGap(cut(cut(text, ...own), ...its), node.offset - 1)
}

/** The innermost existing object on a path, with the member there or the missing keys. */
export function locate(
  object: Node,
  keys: readonly string[],
): { readonly object: Node; readonly missing: readonly string[]; readonly member?: Member } {
  const members = membersOf(object)
  for (let count = keys.length; count > 0; count--) {
    const key = keys.slice(0, count).join('.')
    // The later of two members with one name counts.
    const member = members.findLast(one => one.key === key)
    if (member && count === keys.length) return { object, missing: [], member }
    if (member?.value.type === 'object') return locate(member.value, keys.slice(count))
  }
  return { object, missing: keys }
}

function insert(text: string, object: Node, key: string, value: unknown): string {
  const layout = layoutOf(text)
  const last = membersOf(object).at(-1)?.node
  const close = endOf(object) - 1
  const head = `${JSON.stringify(key)}: `
  const from = last ? last.offset + last.length : object.offset + 1
  const comma = last && commaIn(text, from, close)
  const contentEnd = text.slice(0, close).trimEnd().length
  if (last && !text.slice(object.offset, close).includes('\n')) {
    const after = comma === undefined ? ', ' : ' '
    return `${text.slice(0, contentEnd)}${after}${head}${print(value, '', { ...layout, unit: '' })}${text.slice(contentEnd)}`
  }
  const outer = indentOf(text, close)
  const indent = last ? indentOf(text, last.offset) : outer + layout.unit
  const line = `${layout.eol}${indent}${head}${print(value, indent, layout)}`
  // After the comments on the last member's line, which belong to that member.
  const at = last ? lineEnd(text, comma === undefined ? from : comma + 1, contentEnd) : contentEnd
  const tail = text.slice(at)
  const closing = at === contentEnd && !text.slice(contentEnd, close).includes('\n') ? layout.eol + outer : ''
  const rest = closing ? text.slice(close) : tail
  if (last && comma === undefined) return `${text.slice(0, from)},${text.slice(from, at)}${line}${closing}${rest}`
  return `${text.slice(0, at)}${line}${closing}${rest}`
}

/** Position of the comma between two members, outside of comments. */
function commaIn(text: string, from: number, to: number): number | undefined {
  for (const { token, at } of tokens(text, from, to)) if (token === ',') return at
  return undefined
}

/** End of the line that contains `from`, including comments that begin there; `to` when something else comes first. */
function lineEnd(text: string, from: number, to: number): number {
  for (const { token, at } of tokens(text, from, to)) if (token.endsWith('\n')) return at
  return to
}

/** Commas, comments and line ends in the text between two members. */
const tokens = (text: string, from: number, to: number) =>
  [...text.slice(from, to).matchAll(/\/\/[^\r\n]*|\/\*[\s\S]*?\*\/|,|\r?\n/g)].map(match => ({
    token: match[0],
    at: from + match.index,
  }))

/** Removes the blanks around a cut, and the line if nothing else is on it. */
function withoutGap(text: string, at: number): string {
  const start = text.slice(0, at).replace(/[ \t]+$/, '').length
  const isLine = start === 0 || text[start - 1] === '\n'
  const [blank = ''] = /^[ \t]*(?:\r?\n)?/.exec(text.slice(at)) ?? []
  if (isLine) return cut(text, blank.endsWith('\n') ? start : at, at + blank.length)
  return cut(text, start, at)
}

type Range = readonly [from: number, to: number]
const cut = (text: string, from: number, to: number) => text.slice(0, from) + text.slice(to)
const endOf = ({ offset, length }: Node) => offset + length
const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
const nested = (keys: readonly string[], value: unknown): unknown =>
  keys.reduceRight((inner: unknown, key) => Object.fromEntries([[key, inner]]), value)

/** Leading blanks of the line that contains `at`. */
const indentOf = (text: string, at: number) =>
  /^[ \t]*/.exec(text.slice(text.lastIndexOf('\n', at - 1) + 1, at))?.[0] ?? ''

interface Layout {
  readonly unit: string
  readonly eol: string
}

const layoutOf = (text: string): Layout => ({
  unit: /^([ \t]+)\S/m.exec(text)?.[1] ?? '  ',
  eol: text.includes('\r\n') ? '\r\n' : '\n',
})

function print(value: unknown, indent: string, { unit, eol }: Layout): string {
  const text = JSON.stringify(value, undefined, unit)
  return text.replaceAll('\n', eol + indent)
}
