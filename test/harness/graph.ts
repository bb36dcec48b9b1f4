/** Arrows from a node to others, as an adjacency list. */
export type Graph = ReadonlyMap<string, ReadonlySet<string>>

/** A graph of those arrows; arrows of a node to itself are left out. */
export function graphOf(arrows: Iterable<readonly [from: string, to: string]>): Graph {
  const graph = new Map<string, Set<string>>()
  for (const [from, to] of arrows) {
    if (from === to) continue
    graph.set(from, (graph.get(from) ?? new Set()).add(to))
  }
  return graph
}

/**
 * The circles of a graph: its strongly connected components of more than one node (Tarjan), each sorted, in order of their
 * first node. None: the graph is acyclic.
 */
export function circlesOf(graph: Graph): string[][] {
  const index = new Map<string, number>()
  const low = new Map<string, number>()
  const stack: string[] = []
  const circles: string[][] = []
  const visit = (node: string): void => {
    index.set(node, index.size)
    low.set(node, index.get(node) as number)
    stack.push(node)
    for (const next of graph.get(node) ?? []) {
      if (!index.has(next)) visit(next)
      if (stack.includes(next)) low.set(node, Math.min(low.get(node) as number, low.get(next) as number))
    }
    if (low.get(node) !== index.get(node)) return
    const component = stack.splice(stack.indexOf(node))
    if (component.length > 1) circles.push(component.sort())
  }
  for (const node of graph.keys()) if (!index.has(node)) visit(node)
  return circles.sort(([a = ''], [b = '']) => (a < b ? -1 : 1))
}
