import { canonicalJson } from '../../../../kernel/kit/canonical.js'
import type { Batch, RecordScope, StoredRecord } from '../../../../kernel/plugin.js'
import type { AgentDefinition } from '../api.js'
import type { AgentSpec } from './agent-kind.js'
import { definitionOf, digestOf } from './definition.js'
import type { Found } from './files.js'
import type { Source } from './view.js'

const GLOBAL = ''
const scopeOf = ({ kind, id }: RecordScope) => (kind === 'workspace' ? (id ?? GLOBAL) : GLOBAL)

/** Indexes the records of kind `agent` by scope and name. */
export class RecordIndex {
  readonly #scopes = new Map<string, RecordSource>()
  readonly #scopeOfId = new Map<string, string>()

  /** Definitions of a workspace, or global ones. */
  scope(workspaceId = GLOBAL): Source {
    return this.#scope(workspaceId)
  }

  /** Every definition of every scope. */
  *all(): Iterable<AgentDefinition> {
    for (const source of this.#scopes.values()) yield* source.definitions()
  }

  reconcile({ records, removed, fail }: Batch<AgentSpec>): void {
    for (const id of removed) this.#remove(id)
    for (const record of records) {
      try {
        const definition = fromRecord(record)
        this.#remove(record.id)
        const scope = scopeOf(record.scope)
        this.#scopeOfId.set(record.id, scope)
        this.#scope(scope).put(record.id, definition)
      } catch (error) {
        fail(record.id, error)
      }
    }
  }

  #scope(key: string): RecordSource {
    const known = this.#scopes.get(key)
    if (known) return known
    const made = new RecordSource()
    this.#scopes.set(key, made)
    return made
  }

  #remove(id: string): void {
    const scope = this.#scopeOfId.get(id)
    if (scope === undefined) return
    this.#scopeOfId.delete(id)
    this.#scope(scope).remove(id)
  }
}

/** Records of one scope; the lowest id of a name wins. */
class RecordSource implements Source {
  readonly #byId = new Map<string, AgentDefinition>()
  readonly #idsByName = new Map<string, string[]>()
  version = 0

  put(id: string, definition: AgentDefinition): void {
    this.#byId.set(id, definition)
    this.#idsByName.set(definition.name, [...(this.#idsByName.get(definition.name) ?? []), id].sort())
    this.version++
  }

  remove(id: string): void {
    const definition = this.#byId.get(id)
    if (!definition) return
    this.#byId.delete(id)
    const rest = (this.#idsByName.get(definition.name) ?? []).filter(other => other !== id)
    if (rest.length > 0) this.#idsByName.set(definition.name, rest)
    else this.#idsByName.delete(definition.name)
    this.version++
  }

  definitions(): Iterable<AgentDefinition> {
    return this.#byId.values()
  }

  async refresh(): Promise<void> {}

  *found(): Iterable<Found> {
    for (const name of this.#idsByName.keys()) yield this.#first(name) as Found
  }

  async read(name: string): Promise<Found | undefined> {
    return this.#first(name)
  }

  #first(name: string): Found | undefined {
    const [id = ''] = this.#idsByName.get(name) ?? []
    const definition = this.#byId.get(id)
    return definition && { ok: true, name, path: definition.path ?? `agent ${id}`, definition }
  }
}

function fromRecord({ id, owner, spec, scope }: StoredRecord<AgentSpec>): AgentDefinition {
  const workspaceId = scope.kind === 'workspace' ? scope.id : undefined
  return definitionOf(spec, spec.prompt, digestOf(canonicalJson(spec)), {
    origin: workspaceId === undefined ? 'global' : 'workspace',
    source: 'record',
    record: { id, owner, scope },
    ...(workspaceId === undefined ? {} : { workspaceId }),
    ...(spec.source_path === undefined ? {} : { path: spec.source_path }),
    ...(spec.extension === undefined ? {} : { extension: spec.extension }),
  })
}
