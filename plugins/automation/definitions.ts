import * as v from 'valibot'
import { shown } from '../../kernel/kit/text.js'
import {
  type Actor,
  Fault,
  iso,
  issueText,
  type Kind,
  type MaybeToken,
  type PluginKernel,
  type RecordChange,
  type RecordScope,
  type RecordWrite,
  type StoredRecord,
  type Tx,
} from '../../kernel/plugin.js'
import type { FireLimit } from '../../schemas/automation.js'
import type { AgentsApi } from '../agents/api.js'
import type { Reconcile } from '../reconcile/api.js'
import type { Sessions } from '../sessions/api.js'
import { isElsewhere, type Workspaces } from '../workspaces/api.js'
import { AutomationErrors, type JobSpec, type TriggerSpec } from './api.js'
import { nameKey, nameOf } from './cursors.js'
import { decodeAs, isLoop, type JobProblem, jobSource } from './job-kind.js'
import { lifecycleCommand } from './lifecycle-command.js'
import type { Overlays } from './overlays.js'

export type DefinitionNeeds = {
  reconcile: typeof Reconcile
  sessions: typeof Sessions
  workspaces: typeof Workspaces
  agents: MaybeToken<AgentsApi>
}
export type DefinitionKernel = Pick<PluginKernel<DefinitionNeeds>, 'clock' | 'db' | 'records' | 'needs' | 'ids'>

/** A stored job or trigger. */
export type DefinitionRecord = StoredRecord<JobSpec> | StoredRecord<TriggerSpec>

/** What sets one kind of definitions apart. */
export interface Family<S> {
  readonly noun: 'job' | 'trigger'
  /** The command that switches one off. */
  readonly disable: (id: string) => string
  readonly kind: Kind<S>
  readonly schema: v.GenericSchema<unknown, S>
  readonly problem: (spec: S, scope: RecordScope) => JobProblem | undefined
}

type DefinitionWrite = Omit<RecordWrite, 'kind'>

/** Where a request wants a definition. */
export interface Wanted {
  readonly scope: 'global' | 'workspace'
  readonly workspace_id?: string | undefined
}

/** Reads and writes the records of jobs, or of triggers: they are their only definitions. */
export abstract class Definitions<S extends JobSpec | TriggerSpec, W> {
  /** Ids that were given a name and may not be projected yet; what is in here is looked up before it is believed. */
  readonly #named = new Map<string, string>()

  constructor(
    protected readonly kernel: DefinitionKernel,
    protected readonly overlays: Overlays,
    protected readonly family: Family<S>,
    /** Of definitions that have none of their own. */
    readonly fireLimit: FireLimit,
  ) {}

  /** As the contract has it. */
  abstract toWire(record: StoredRecord<S>): W
  /** Definitions that have this name already. */
  protected abstract named(key: string, record: Pick<StoredRecord, 'scope' | 'spec'>): readonly string[]
  /** Refuses what is right in a stored definition and a mistake in one that a person writes now. */
  protected refuse(_spec: S): void {}

  /** As `by` finds it, or the daemon itself. Throws `…_not_found`, `…_damaged`. */
  find(id: string, by?: Actor): StoredRecord<S> {
    const record = this.decode(this.stored(id, by))
    if (record) return record
    const { noun } = this.family
    throw this.#fault('damaged')(`the stored definition of ${noun} ${id} is not valid; write it anew or delete it`)
  }

  /** The record as it is stored, valid or not. Throws `…_not_found`. */
  stored(id: string, by?: Actor): StoredRecord {
    const record = this.kernel.records.get(this.family.kind.name, id)
    if (!record || (by && isElsewhere(by, record.scope)))
      throw this.#fault('not_found')(`there is no ${this.family.noun} ${shown(id)}`)
    return record
  }

  /** A record that may have been stored before its codec was there; undefined when it does not match the schema. */
  decode(record: StoredRecord | undefined): StoredRecord<S> | undefined {
    return decodeAs(this.family.schema, record)
  }

  /** Null and absent members stay as they are. */
  async patch(actor: Actor, id: string, body: object): Promise<W> {
    const before = this.find(id, actor)
    const change = Object.fromEntries(
      Object.entries(body).filter(([, value]: [string, unknown]) => value !== null && value !== undefined),
    )
    if (Object.keys(change).length === 0) return this.toWire(before)
    const { kind } = this.family
    if (jobSource(before) !== 'dynamic') {
      const { enabled } = change
      if (Object.keys(change).length > 1 || typeof enabled !== 'boolean') throw this.#fault('read_only')()
      await this.kernel.db.tx(t => this.overlays.set(t, id, enabled))
      this.kernel.needs.reconcile.mark([{ kind: kind.name, id }])
      return this.settled(id)
    }
    const spec = { ...before.spec, ...change }
    const wanted = this.#validate(spec, before.scope)
    if ('schedule' in change) this.refuse(wanted)
    if ('agent_name' in change) await this.#agentExists(wanted, before.scope)
    const write = { id, scope: before.scope, spec, expectedVersion: before.version, owner: before.owner }
    await this.kernel.db.tx(t => this.put(t, actor, write))
    return this.settled(id)
  }

  async remove(actor: Actor, id: string): Promise<void> {
    const { kind, noun } = this.family
    if (jobSource(this.stored(id, actor)) !== 'dynamic') {
      throw this.#fault('read_only')(`this ${noun} is defined by the configuration or a package and goes with it`, {
        next: this.family.disable(id),
      })
    }
    await this.kernel.db.tx(t => this.kernel.records.delete(t, actor, { kind, id }))
    await this.kernel.needs.reconcile.settled([{ kind: kind.name, id }])
  }

  /** What was projected has its name now. */
  projected(record: StoredRecord): void {
    this.#named.delete(nameKey(record))
  }

  /** Refuses, inside the transaction of a write at any door, a prompt that ends the daemon. */
  guard(change: RecordChange): Fault | undefined {
    if (change.verb !== 'put' || jobSource(change.after) !== 'dynamic') return undefined
    return lifecycleFault(change.after.spec as Partial<JobSpec>)
  }

  /** Refuses a name that another definition of the same scope has. */
  protected nameTaken(record: Pick<StoredRecord, 'id' | 'scope' | 'spec'>): Fault | undefined {
    const { noun, kind } = this.family
    const key = nameKey(record)
    for (const id of [this.#named.get(key) ?? record.id, ...this.named(key, record)]) {
      const other = id === record.id ? undefined : this.kernel.records.get(kind.name, id)
      if (other && nameKey(other) === key)
        return this.#fault('name_taken')(`${noun} ${id} has the name ${JSON.stringify(nameOf(other))} already`)
    }
    this.#named.set(key, record.id)
    return undefined
  }

  /** Writes a definition that a request wants. */
  protected put(t: Tx, actor: Actor, write: DefinitionWrite): void {
    this.kernel.records.put(t, actor, { kind: this.family.kind, ...write })
  }

  /** Checks a new definition as a request for it would be. */
  protected async checked({ scope: kind, workspace_id: workspace }: Wanted, spec: object): Promise<RecordScope> {
    const scope = this.#scopeOf(kind, workspace)
    const wanted = this.#validate(spec, scope)
    this.refuse(wanted)
    await this.#agentExists(wanted, scope)
    const fault = lifecycleFault(wanted)
    if (fault) throw fault
    return scope
  }

  /** Checks and stores a new definition. */
  protected async insert(actor: Actor, id: string, place: Wanted, spec: object) {
    const scope = await this.checked(place, spec)
    await this.kernel.db.tx(t => this.put(t, actor, { id, scope, spec, expectedVersion: 0 }))
    return this.settled(id)
  }

  /** The definition as written, once it is projected. */
  protected async settled(id: string): Promise<W> {
    await this.kernel.needs.reconcile.settled([{ kind: this.family.kind.name, id }])
    return this.toWire(this.find(id))
  }

  /** Members that jobs and triggers have alike. */
  protected common(record: StoredRecord<S>) {
    const { spec } = record
    return {
      fire_limit: spec.fire_limit ?? this.fireLimit,
      retry: spec.retry ?? { strategy: 'none' as const, max_retries: 0, base_delay: '' },
      created_at: iso(record.createdAt),
      updated_at: iso(record.updatedAt),
    }
  }

  #fault(what: 'not_found' | 'damaged' | 'invalid' | 'read_only' | 'name_taken') {
    return AutomationErrors[`${this.family.noun}_${what}`]
  }

  #validate(spec: unknown, scope: RecordScope): S {
    const decoded = v.safeParse(this.family.schema, spec)
    const invalid = this.#fault('invalid')
    if (!decoded.success) {
      const [issue] = decoded.issues
      throw invalid(`${v.getDotPath(issue) ?? this.family.noun}: ${issueText(issue)}`)
    }
    const problem = this.family.problem(decoded.output, scope)
    if (problem?.of === 'loop') throw AutomationErrors.loop_invalid(problem.text)
    if (problem) throw invalid(problem.text)
    return decoded.output
  }

  /** Refuses an agent that is not there when this is written; one that is invalid may be mended before it runs. */
  async #agentExists({ agent_name: name }: S, scope: RecordScope): Promise<void> {
    const agents = this.kernel.needs.agents.current
    if (!agents || !name) return
    const workspace = scope.id === undefined ? undefined : this.kernel.needs.workspaces.get(scope.id)
    try {
      await agents.find(name, workspace)
    } catch (error) {
      if (!(error instanceof Fault)) throw error
      if (error.code === 'agent_not_found')
        throw this.#fault('invalid')(`agent_name: there is no agent ${shown(name)}`, { next: 'svc agent list' })
    }
  }

  #scopeOf(kind: Wanted['scope'], workspace: string | undefined): RecordScope {
    if (kind === 'workspace') {
      if (!workspace) throw this.#fault('invalid')('workspace_id: required for scope workspace')
      return { kind, id: workspace }
    }
    if (workspace) throw this.#fault('invalid')('workspace_id: must be empty for scope global')
    return { kind }
  }
}

function lifecycleFault({ prompt = '', task }: Partial<Pick<JobSpec, 'prompt' | 'task'>>): Fault | undefined {
  const found = lifecycleCommand(`${prompt}\n${task?.description ?? ''}`)
  return found && AutomationErrors.lifecycle_command(undefined, { details: { class: found } })
}

/** What a record says of a definition by itself. */
export function factsOf(record: DefinitionRecord, enabled: boolean) {
  const { id, spec, scope } = record
  return {
    id,
    name: spec.name,
    agent_name: spec.agent_name ?? '',
    prompt: spec.prompt ?? '',
    enabled,
    target_kind: isLoop(spec) ? 'loop' : 'agent',
    scope: scope.kind === 'workspace' ? ('workspace' as const) : ('global' as const),
    ...(scope.id === undefined ? {} : { workspace_id: scope.id }),
    source: jobSource(record),
    ...(spec.loop_target ? { loop_target: spec.loop_target } : {}),
  }
}
