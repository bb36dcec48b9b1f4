export interface Edge {
  readonly from: string
  readonly to: string
}

export interface Placed {
  readonly id: string
  readonly layer: number
  readonly row: number
}

/**
 * Arranges nodes in layers. Each node is in a layer to the right of its dependencies, in a row near their middle, which keeps
 * most edges short and avoids most crossings. Edges that close a cycle are ignored.
 */
export function placeInLayers(ids: readonly string[], edges: readonly Edge[]): Placed[] {
  const needs = new Map<string, string[]>(ids.map(id => [id, []]))
  for (const { from, to } of edges) if (needs.has(from)) needs.get(to)?.push(from)
  const layers = new Map<string, number>()
  const open = new Set<string>()
  const layerOf = (id: string): number => {
    const known = layers.get(id)
    if (known !== undefined) return known
    if (open.has(id)) return -1
    open.add(id)
    const layer = Math.max(-1, ...(needs.get(id) ?? []).map(layerOf)) + 1
    open.delete(id)
    layers.set(id, layer)
    return layer
  }
  for (const id of ids) layerOf(id)
  const rows = new Map<string, number>()
  const placed: Placed[] = []
  for (let layer = 0; layer <= Math.max(-1, ...layers.values()); layer++) {
    const members = ids.filter(id => layers.get(id) === layer)
    const middle = (id: string) => {
      const above = (needs.get(id) ?? []).flatMap(need => rows.get(need) ?? [])
      return above.length === 0 ? 0 : above.reduce((sum, row) => sum + row, 0) / above.length
    }
    const middles = new Map(members.map(id => [id, middle(id)]))
    members.sort((a, b) => (middles.get(a) ?? 0) - (middles.get(b) ?? 0))
    for (const [row, id] of members.entries()) {
      rows.set(id, row)
      placed.push({ id, layer, row })
    }
  }
  return placed
}
