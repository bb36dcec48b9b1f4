import * as v from 'valibot'
import { command } from '../../../kernel/kit/commands/command-line.js'
import { issueLine } from '../../../kernel/kit/issue-text.js'
import { shown } from '../../../kernel/kit/text.js'
import {
  type Actor,
  Fault,
  iso,
  type Kind,
  type RecordChange,
  type RecordScope,
  type RecordWrite,
  type StoredRecord,
  type Tx,
} from '../../../kernel/plugin.js'
import type { FireLimit } from '../../../schemas/automation.js'
import { isElsewhere } from '../../desk/workspaces/api.js'
import { AutomationErrors, type JobSpec, type TriggerSpec } from './api.js'
import { nameKey, nameOf } from './cursors.js'
import { KnownTotal } from './definition-list.js'
import { decodeAs, isLoop, type JobProblem, jobSource } from './job-kind.js'
import { lifecycleCommand } from './lifecycle-command.js'
import type { K } from './needs.js'
import type { Overlays } from './overlays.js'

/** A stored job or trigger. */
export type DefinitionRecord = StoredRecord<JobSpec> | StoredRecord<TriggerSpec>

/** The differences between jobs and triggers. */
export interface Family<S> {
  readonly noun: 'job' | 'trigger'
  /** The command that disables one. */
  readonly disable: (id: string) => string
  readonly kind: Kind<S>
  readonly schema: v.GenericSchema<unknown, S>
  readonly problem: (spec: S, scope: RecordScope) => JobProblem | undefined
}

/** Control characters, line breaks among them. */
const UNPRINTABLE = /\p{Cc}/u

type DefinitionWrite = Omit<RecordWrite, 'kind'>

/** Requested scope of a definition. */
export interface Wanted {
  readonly scope: 'global' | 'workspace'
  readonly workspace_id?: string | undefined
}

/** Reads and writes the records of jobs or triggers. */
export abstract class Definitions<S extends JobSpec | TriggerSpec, W> {
  /** Id by name of definitions that may not be projected yet; entries are verified before use. */
  readonly #named = new Map<string, string>()
  /** Number of all definitions. */
  readonly all = new KnownTotal()

  constructor(
    protected readonly kernel: K,
    protected readonly overlays: Overlays,
    protected readonly family: Family<S>,
    /** Default fire limit. */
    readonly fireLimit: FireLimit,
  ) {}

  /** The wire form. */
  abstract toWire(record: StoredRecord<S>): W
  /** Ids of definitions with this name. */
  protected abstract named(key: string, record: Pick<StoredRecord, 'scope' | 'spec'>): readonly string[]
  /** Extra checks for requests that must not apply to stored definitions. */
  protected refuse(_spec: S): void {}

  /** Finds a definition visible to `by` (default: the daemon). Throws `…_not_found`, `…_damaged`. */
  find(id: string, by?: Actor): StoredRecord<S> {
    const record = this.decode(this.stored(id, by))
    if (record) return record
    const { noun } = this.family
    throw this.#fault('damaged')(
      `the stored definition of ${noun} ${id} is invalid; delete the ${noun} and create it again`,
    )
  }

  /** The stored record, valid or not. Throws `…_not_found`. */
  stored(id: string, by?: Actor): StoredRecord {
    const record = this.kernel.records.get(this.family.kind.name, id)
    if (!record || (by && isElsewhere(by, record.scope)))
      throw this.#fault('not_found')(`${this.family.noun} not found: ${shown(id)}`)
    return record
  }

  /** Decodes a record; undefined when it does not match the schema. */
  decode(record: StoredRecord | undefined): StoredRecord<S> | undefined {
    return decodeAs(this.family.schema, record)
  }

  /** Null and absent members keep their value. */
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
      throw this.#fault('read_only')(
        `this ${noun} is defined in the configuration or a package and can only be removed there`,
        {
          next: this.family.disable(id),
        },
      )
    }
    await this.kernel.db.tx(t => this.kernel.records.delete(t, actor, { kind, id }))
    await this.kernel.needs.reconcile.settled([{ kind: kind.name, id }])
  }

  /** The record was projected: its name is found by the index from now on. */
  projected(record: StoredRecord): void {
    this.all.changed()
    this.#named.delete(nameKey(record))
  }

  /** Refuses a prompt that would stop the daemon, and texts that no terminal shows, inside the transaction of any write. */
  guard(change: RecordChange): Fault | undefined {
    this.all.changed()
    if (change.verb !== 'put' || jobSource(change.after) !== 'dynamic') return undefined
    const { name = '', prompt = '', ...rest } = change.after.spec as Partial<JobSpec>
    // A stored name of an earlier version stays valid: only a changed name is refused.
    const before = Object(change.before?.spec) as Partial<JobSpec>
    if (name !== before.name && UNPRINTABLE.test(name))
      return this.#fault('invalid')('name: line breaks and other control characters are not allowed')
    if (prompt !== before.prompt && prompt.includes('\0')) return this.#fault('invalid')('prompt: NUL is not allowed')
    return lifecycleFault({ ...rest, prompt })
  }

  /** Refuses a name already used in the same scope. */
  protected nameTaken(record: Pick<StoredRecord, 'id' | 'scope' | 'spec'>): Fault | undefined {
    const { noun, kind } = this.family
    const key = nameKey(record)
    for (const id of [this.#named.get(key) ?? record.id, ...this.named(key, record)]) {
      const other = id === record.id ? undefined : this.kernel.records.get(kind.name, id)
      if (other && nameKey(other) === key)
        return this.#fault('name_taken')(`${noun} name ${JSON.stringify(nameOf(other))} is already in use by ${id}`)
    }
    this.#named.set(key, record.id)
    return undefined
  }

  /** Writes a definition. */
  protected put(t: Tx, actor: Actor, write: DefinitionWrite): void {
    this.kernel.records.put(t, actor, { kind: this.family.kind, ...write })
  }

  /** Validates a new definition. */
  protected async checked({ scope: kind, workspace_id: workspace }: Wanted, spec: object): Promise<RecordScope> {
    const scope = this.#scopeOf(kind, workspace)
    const wanted = this.#validate(spec, scope)
    this.refuse(wanted)
    await this.#agentExists(wanted, scope)
    const fault = lifecycleFault(wanted)
    if (fault) throw fault
    return scope
  }

  /** Validates and stores a new definition. */
  protected async insert(actor: Actor, id: string, target: Wanted, spec: object) {
    const scope = await this.checked(target, spec)
    await this.kernel.db.tx(t => this.put(t, actor, { id, scope, spec, expectedVersion: 0 }))
    return this.settled(id)
  }

  /** The definition as written, once it is projected. */
  protected async settled(id: string): Promise<W> {
    await this.kernel.needs.reconcile.settled([{ kind: this.family.kind.name, id }])
    return this.toWire(this.find(id))
  }

  /** Members that jobs and triggers share. */
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
      throw invalid(`${issueLine(issue, this.family.noun)}`)
    }
    const problem = this.family.problem(decoded.output, scope)
    if (problem?.of === 'loop') throw AutomationErrors.loop_invalid(problem.text)
    if (problem) throw invalid(problem.text)
    return decoded.output
  }

  /** Refuses an unknown agent. An invalid agent is accepted: it may be fixed before the first run. */
  async #agentExists({ agent_name: name }: S, scope: RecordScope): Promise<void> {
    const agents = this.kernel.needs.agents.current
    if (!agents || !name) return
    const workspace = scope.id === undefined ? undefined : this.kernel.needs.workspaces.get(scope.id)
    try {
      await agents.find(name, workspace)
    } catch (error) {
      if (!(error instanceof Fault)) throw error
      if (error.code === 'agent_not_found')
        throw this.#fault('invalid')(`agent_name: agent not found: ${shown(name)}`, { next: command('agent list') })
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

/** The members of a definition that come from its record alone. */
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
