import type { Fault } from '../../../../kernel/plugin.js'
import { messageOf, within } from '../../../../kernel/plugin.js'
import type { ReasonCode } from '../../../../schemas/tools.js'
import { type OfferedTool, type ToolBackend, ToolBackends, type ToolDescriptor, type ToolPlace } from '../api.js'
import type { K } from '../needs.js'
import { idProblem, isForeign } from './ids.js'
import { schemaProblem } from './schema-check.js'
import { SearchIndex } from './search.js'

/** Milliseconds in which a backend has to tell its tools. */
const TELL_MS = 5000
/** Places whose tools are kept put together. */
const KEPT = 32

/** A tool, who provides it, and whether it could be called. */
export interface Entry extends OfferedTool {
  readonly backend: ToolBackend
  /** Two tools have its id: neither can be called. */
  readonly conflicted: boolean
}

/** The tools of one place, put together. */
export class Catalog {
  readonly entries: readonly Entry[]
  readonly #byId: ReadonlyMap<string, Entry>
  #index: SearchIndex | undefined

  constructor(readonly parts: readonly Part[]) {
    const byId = new Map<string, Entry>()
    for (const { backend, tools } of parts) {
      for (const tool of tools) {
        const before = byId.get(tool.descriptor.id)
        byId.set(tool.descriptor.id, before ? conflicted(before, backend) : judged(tool, backend))
      }
    }
    this.#byId = byId
    this.entries = [...byId.values()].sort((a, b) => (a.descriptor.id < b.descriptor.id ? -1 : 1))
  }

  get(id: string): Entry | undefined {
    return this.#byId.get(id)
  }

  /** Entries by their fit, the best first; all of them where nothing is looked for. */
  find(query: string): readonly Entry[] {
    if (query.trim() === '') return this.entries
    this.#index ??= new SearchIndex(this.entries)
    return this.#index.find(query).map(at => this.entries[at] as Entry)
  }
}

interface Part {
  readonly backend: ToolBackend
  readonly tools: readonly OfferedTool[]
}

/** Puts the tools of all backends together; what came of the same lists is made once. */
export class Catalogs {
  readonly #kept: Catalog[] = []

  constructor(
    private readonly kernel: K,
    private readonly own: readonly ToolBackend[],
  ) {}

  /** Waits a while for what tells its tools late; resolves with the names of what still has not. */
  async complete(place: ToolPlace): Promise<readonly string[]> {
    return (await Promise.all(this.#backends().map(backend => backend.complete?.(place) ?? []))).flat()
  }

  /** Why a tool that no list has may still be there. */
  async missing(id: string, place: ToolPlace): Promise<Fault | undefined> {
    const told = await Promise.all(this.#backends().map(backend => backend.missing?.(id, place)))
    return told.find(fault => fault !== undefined)
  }

  #backends(): readonly ToolBackend[] {
    return [...this.own, ...this.kernel.collect(ToolBackends).map(({ entry }) => entry)]
  }

  async of(place: ToolPlace): Promise<Catalog> {
    const parts = await Promise.all(this.#backends().map(backend => this.#told(backend, place)))
    const known = this.#kept.find(
      catalog =>
        catalog.parts.length === parts.length &&
        catalog.parts.every(({ backend, tools }, n) => backend === parts[n]?.backend && tools === parts[n]?.tools),
    )
    if (known) return known
    const catalog = new Catalog(parts)
    this.#kept.unshift(catalog)
    this.#kept.splice(KEPT)
    return catalog
  }

  async #told(backend: ToolBackend, place: ToolPlace): Promise<Part> {
    try {
      return { backend, tools: await within(this.kernel.clock, TELL_MS, Promise.resolve(backend.tools(place))) }
    } catch (error) {
      this.kernel.log.warn('a backend did not tell its tools', { backend: backend.kind, error: messageOf(error) })
      return { backend, tools: NONE }
    }
  }
}

const NONE: readonly OfferedTool[] = []

/** Schemas that were looked at, which takes longer than all else. */
const problems = new WeakMap<object, { readonly problem: string | undefined }>()

function problemOf({ inputSchema }: ToolDescriptor): string | undefined {
  const known = problems.get(inputSchema)
  if (known) return known.problem
  const problem = schemaProblem(inputSchema)
  problems.set(inputSchema, { problem })
  return problem
}

/** With what the registry itself has against it before what its backend says. */
function judged(tool: OfferedTool, backend: ToolBackend): Entry {
  const { descriptor } = tool
  const id = idProblem(descriptor.id)
  const foreign: readonly ReasonCode[] =
    !id && isForeign(descriptor.id, descriptor.backend.kind) ? ['reserved_namespace'] : []
  const schema = problemOf(descriptor)
  const own: readonly ReasonCode[] = [...(id ? [id] : []), ...foreign, ...(schema ? (['schema_invalid'] as const) : [])]
  const why = schema === undefined ? tool.why : `its input schema cannot be used: ${schema}`
  return {
    descriptor,
    backend,
    conflicted: false,
    unavailable: [...own, ...(tool.unavailable ?? [])],
    ...(why === undefined ? {} : { why }),
  }
}

function conflicted(before: Entry, backend: ToolBackend): Entry {
  // Names of one backend fall together when they are made into ids; those of two were given.
  const reason = before.backend === backend && backend.kind === 'mcp' ? 'conflicted_sanitized_name' : 'conflicted_id'
  return { ...before, conflicted: true, unavailable: [reason], why: 'two tools have this id' }
}
