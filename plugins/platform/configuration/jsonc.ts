import { type Node, type ParseError, type ParseErrorCode, parseTree } from 'jsonc-parser'

/** Code for a text that is nested too deeply for the recursive parser, distinct from the parser's codes. */
const TOO_DEEP = 0 as ParseErrorCode

/** The tree of JSON with comments and trailing commas; undefined for an empty text. */
export function treeOf(text: string, errors: ParseError[] = []): Node | undefined {
  try {
    // Some editors write a byte order mark; replacing it by a blank keeps every offset.
    return parseTree(text.replace(/^\uFEFF/, ' '), errors, { allowTrailingComma: true, disallowComments: false })
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    errors.splice(0, errors.length, { error: TOO_DEEP, offset: 0, length: 0 })
    return undefined
  }
}

/** Line and column of an offset, from 1. */
export function placeOf(text: string, offset: number): { readonly line: number; readonly column: number } {
  const lines = text.slice(0, offset).split('\n')
  return { line: lines.length, column: (lines.at(-1)?.length ?? 0) + 1 }
}

/** A value without the positions in its text. */
export function plain(node: Node): unknown {
  if (node.type === 'array') return (node.children ?? []).map(plain)
  if (node.type !== 'object') return node.value
  return Object.fromEntries(membersOf(node).map(({ key, value }) => [key, plain(value)]))
}

export interface Member {
  readonly key: string
  readonly value: Node
  /** The whole property, including its key. */
  readonly node: Node
}

export function membersOf({ children = [] }: Node): Member[] {
  return children.flatMap(node => {
    const [key, value] = node.children ?? []
    return key && value ? [{ key: String(key.value), value, node }] : []
  })
}
