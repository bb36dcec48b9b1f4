import { findNodeAtLocation, parseTree } from 'jsonc-parser'

/** `line:column` of a value in a JSON text, or of its nearest existing parent. */
export function positionsIn(text: string): (keys: readonly (string | number)[]) => string {
  // A space instead of a byte order mark keeps all offsets.
  const tree = parseTree(text.replace(/^\uFEFF/, ' '), [], { allowTrailingComma: true })
  return keys => {
    let offset = tree?.offset ?? 0
    for (let depth = keys.length; tree && depth > 0; depth--) {
      const node = findNodeAtLocation(tree, keys.slice(0, depth))
      if (!node) continue
      offset = node.offset
      break
    }
    const lines = text.slice(0, offset).split('\n')
    return `${lines.length}:${(lines.at(-1)?.length ?? 0) + 1}`
  }
}
