import type { ReasonCode, Toolset } from '../../../schemas/tools.js'
import { NATIVE_TOOLSETS } from './native-toolsets.js'
import { names } from './policy.js'
import type { Entry } from './registry/catalog.js'

/** A toolset as written: ids or patterns of tools, and other toolsets. */
export interface ToolsetSpec {
  readonly tools: readonly string[]
  readonly toolsets: readonly string[]
}

/** Why a tool of a set cannot be called; undefined if it can. */
type Denied = (id: string) => readonly ReasonCode[] | undefined

/** Built-in toolsets that contain others. */
const NESTED: Readonly<Partial<Record<(typeof NATIVE_TOOLSETS)[number], readonly string[]>>> = {
  core: ['bootstrap', 'catalog', 'tool_artifacts'],
  coordination: ['tasks'],
  autonomy: ['automation', 'coordination', 'loops'],
  observe: ['logs'],
  operator_debug: ['observe', 'hooks'],
}

/** All toolsets: built-in ones, filled by their tools, and those of the operator. */
export class Toolsets {
  readonly #specs = new Map<string, ToolsetSpec>()
  readonly #ids: readonly string[]

  constructor(
    private readonly entries: readonly Entry[],
    configured: Readonly<Record<string, ToolsetSpec>>,
  ) {
    this.#ids = entries.map(({ descriptor }) => descriptor.id)
    for (const id of NATIVE_TOOLSETS) this.#specs.set(id, { tools: [], toolsets: NESTED[id] ?? [] })
    const members = new Map<string, string[]>()
    for (const { descriptor } of entries)
      for (const set of descriptor.toolsets ?? []) members.set(set, [...(members.get(set) ?? []), descriptor.id])
    for (const [id, tools] of members) this.#specs.set(id, { tools, toolsets: this.#specs.get(id)?.toolsets ?? [] })
    // A configuration must not redefine a built-in set, because that would extend the rights of agents that use it.
    for (const [id, spec] of Object.entries(configured)) if (!this.#isNative(id)) this.#specs.set(id, spec)
  }

  list(denied: Denied): Toolset[] {
    return [...this.#specs.keys()].sort().map(id => this.show(id, denied) as Toolset)
  }

  /** Undefined for an unknown set. `status`: `available`, `partially_available` or `unavailable`, with the reasons. */
  show(id: string, denied: Denied): Toolset | undefined {
    const spec = this.#specs.get(id)
    if (!spec) return undefined
    const { tools, reasons } = this.expand([id])
    const denials = tools.flatMap(tool => denied(tool) ?? [])
    const can = tools.filter(tool => !denied(tool)).length
    const problems: readonly ReasonCode[] = [
      ...new Set([
        ...reasons,
        ...(tools.length === 0 && reasons.length === 0 ? (['dependency_missing'] as const) : []),
        ...denials,
      ]),
    ]
    const isBroken = reasons.includes('toolset_cycle')
    return {
      id,
      tools: [...spec.tools].sort(),
      toolsets: [...spec.toolsets].sort(),
      expanded_tools: isBroken ? [] : tools,
      status:
        isBroken || can === 0
          ? 'unavailable'
          : can < tools.length || problems.length > 0
            ? 'partially_available'
            : 'available',
      ...(problems.length > 0 ? { reason_codes: [...problems] } : {}),
    }
  }

  /** Ids of the tools in these sets and their nested sets, sorted and unique. Unknown and circular sets are skipped. */
  expand(ids: readonly string[]): { readonly tools: string[]; readonly reasons: ReasonCode[] } {
    const tools = new Set<string>()
    const reasons = new Set<ReasonCode>()
    const done = new Set<string>()
    const open = new Set<string>()
    const visit = (id: string) => {
      if (open.has(id)) return void reasons.add('toolset_cycle')
      if (done.has(id)) return
      const spec = this.#specs.get(id)
      if (!spec) return void reasons.add('toolset_unknown')
      open.add(id)
      for (const pattern of spec.tools) {
        const found = pattern.endsWith('*') ? this.#ids.filter(tool => names([pattern], tool)) : [pattern]
        if (found.some(tool => !this.#has(tool)) || found.length === 0) reasons.add('tool_unknown')
        for (const tool of found) if (this.#has(tool)) tools.add(tool)
      }
      for (const inner of spec.toolsets) visit(inner)
      open.delete(id)
      done.add(id)
    }
    for (const id of ids) visit(id)
    return { tools: [...tools].sort(), reasons: [...reasons] }
  }

  #known: Set<string> | undefined

  #has(tool: string): boolean {
    this.#known ??= new Set(this.#ids)
    return this.#known.has(tool)
  }

  #isNative(id: string): boolean {
    return (NATIVE_TOOLSETS as readonly string[]).includes(id)
  }
}
