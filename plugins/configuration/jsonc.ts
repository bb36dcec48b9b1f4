import { type Node, parseTree } from 'jsonc-parser'

/** The tree of a text of JSON with comments, as people write it; undefined for an empty one. */
export const treeOf = (text: string, errors: Parameters<typeof parseTree>[1] = []): Node | undefined =>
  // A byte order mark counts as a space, so that every offset stays what it is in the text.
  parseTree(text.replace(/^\uFEFF/, ' '), errors, { allowTrailingComma: true, disallowComments: false })

/** A value without the positions that it was read from. */
export function plain(node: Node): unknown {
  if (node.type === 'array') return (node.children ?? []).map(plain)
  if (node.type !== 'object') return node.value
  return Object.fromEntries(membersOf(node).map(({ key, value }) => [key, plain(value)]))
}

export interface Member {
  readonly key: string
  readonly value: Node
  /** The whole, with its key. */
  readonly node: Node
}

export function membersOf({ children = [] }: Node): Member[] {
  return children.flatMap(node => {
    const [key, value] = node.children ?? []
    return key && value ? [{ key: String(key.value), value, node }] : []
  })
}
