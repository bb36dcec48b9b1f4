import { command } from '../../../kernel/kit/commands/command-line.js'
import { Fault, type RecordScope, type StoredRecord } from '../../../kernel/plugin.js'
import { AgentKind, RESERVED_NAMES } from '../../agents/agents/api.js'
import { BundleErrors } from './errors.js'
import type { K } from './needs.js'
import type { ProfileContent } from './project.js'

type Kernel = Pick<K, 'records' | 'needs'>

/** Whether two scopes share a workspace; a global scope overlaps all. */
export function overlaps(a: RecordScope, b: RecordScope): boolean {
  return a.kind !== 'workspace' || b.kind !== 'workspace' || a.id === b.id
}

/**
 * Checks that the agent names of a profile are free and not reserved, and that the agents of its jobs and triggers
 * exist.
 */
export class VisibleAgents {
  constructor(private readonly kernel: Kernel) {}

  /**
   * Checks agents of files and of the daemon, and the agents that jobs and triggers refer to.
   * @throws Fault `bundle_agent_reserved`, `bundle_agent_missing` (422), `bundle_agent_conflict` (409)
   */
  async check(content: ProfileContent, scope: RecordScope): Promise<void> {
    const own = new Set(content.agents.map(({ spec }) => spec.name))
    const reserved = [...own].find(name => RESERVED_NAMES.has(name))
    if (reserved !== undefined)
      throw BundleErrors.bundle_agent_reserved(`the agent name ${reserved} is reserved for the daemon`)
    const workspace = scope.id === undefined ? undefined : this.kernel.needs.workspaces.get(scope.id)
    const sourceOf = async (name: string) => {
      try {
        return (await this.kernel.needs.agents.find(name, workspace)).source
      } catch (error) {
        if (!(error instanceof Fault)) throw error
        // An invalid definition still takes precedence over all others of its name.
        return error.code === 'agent_invalid' ? ('broken' as const) : undefined
      }
    }
    await Promise.all(
      [...own].map(async name => {
        const source = await sourceOf(name)
        if (source !== undefined && source !== 'record') throw conflict(name, `an agent of the ${PLACES[source]}`)
      }),
    )
    const presets = [...content.jobs, ...content.triggers]
    await Promise.all(
      presets.map(async ({ name, agent, agent_name: worker = agent }) => {
        if (!worker || own.has(worker)) return
        const source = await sourceOf(worker)
        if (source !== undefined && source !== 'broken') return
        throw BundleErrors.bundle_agent_missing(
          `${JSON.stringify(name)} is for the agent ${JSON.stringify(worker)}, which is neither in the profile nor visible there`,
          { next: command('agent list') },
        )
      }),
    )
  }

  /**
   * Checks records of other agents: global ones, those of the workspace, and those of overlapping activations.
   * Synchronous, so that the result holds in the caller's transaction.
   * @throws Fault `bundle_agent_conflict`
   */
  checkRecords(content: ProfileContent, activationId: string, scope: RecordScope): void {
    const own = new Set(content.agents.map(({ spec }) => spec.name))
    if (own.size === 0) return
    for (const { owner, scope: where, spec } of this.#records(scope)) {
      const { name } = spec
      if (!own.has(name) || owner.id === activationId) continue
      const bundled = owner.kind === 'bundle.activation'
      if (!overlaps(scope, where) || (where.kind === 'workspace' && scope.kind !== 'workspace' && !bundled)) continue
      throw conflict(name, bundled ? `activation ${owner.id}` : 'a record of kind agent')
    }
  }

  #records(scope: RecordScope): StoredRecord<{ name: string }>[] {
    const { records } = this.kernel
    if (scope.kind !== 'workspace') return records.list({ kind: AgentKind })
    return [
      ...records.list({ kind: AgentKind, scope }),
      ...records.list({ kind: AgentKind, scope: { kind: 'global' } }),
    ]
  }
}

const PLACES = {
  workspace: 'workspace',
  home: 'home',
  builtin: 'daemon itself',
  contributed: 'folder of a plugin',
  broken: 'workspace or home whose definition is not valid',
} as const

export function conflict(name: string, of: string) {
  return BundleErrors.bundle_agent_conflict(`there is an agent ${JSON.stringify(name)} already: ${of}`, {
    details: { agent: name },
    next: command('agent info', name),
  })
}
