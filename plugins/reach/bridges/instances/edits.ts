import * as v from 'valibot'
import { command } from '../../../../kernel/kit/commands/command-line.js'
import { issueLine } from '../../../../kernel/kit/issue-text.js'
import { shown } from '../../../../kernel/kit/text.js'
import type { Actor, RecordScope } from '../../../../kernel/plugin.js'
import type { CreateBridgeBody, PatchBridgeBody } from '../../../../schemas/bridges.js'
import { BridgeErrors, BridgeInstanceKind, BridgeInstanceSpec, type BridgeProvider } from '../api.js'
import type { K } from '../needs.js'
import type { ConfigCheck } from './config-check.js'
import { type InstanceRecord, type Instances, isPackaged } from './instances.js'
import { states } from './table.js'

/** Members of a PATCH that belong to the spec. */
const SPEC = [
  'display_name',
  'dm_policy',
  'routing_policy',
  'provider_config',
  'delivery_defaults',
  'notification_suppress',
] as const
/** Members that null removes; for others null is ignored. */
const CLEARED = new Set<string>(['provider_config', 'delivery_defaults'])

/** Creates and changes instances on request. */
export class Edits {
  constructor(
    private readonly kernel: K,
    private readonly instances: Instances,
    private readonly configs: ConfigCheck,
  ) {}

  /** @throws Fault `bridge_invalid`, `bridge_provider_not_found`, `workspace_not_found` and those of {@link Edits.#judge} */
  async create({ scope: wanted, workspace_id, ...body }: CreateBridgeBody, actor: Actor): Promise<string> {
    const id = this.kernel.ids.id('bri')
    const scope = await this.#scopeOf(wanted, workspace_id, actor)
    const { extension_name: extension, platform } = body
    const spec = checked({ id, scope, spec: { ...body, ...whereOf(scope), source: 'dynamic' } })
    const provider = this.instances.providerOf({ extension, platform })
    if (!provider) {
      throw BridgeErrors.bridge_provider_not_found(
        `no running extension ${shown(extension)} has the platform ${shown(platform)}`,
      )
    }
    await this.#judge(provider, spec.provider_config)
    await this.kernel.db.tx(t =>
      this.kernel.records.put(t, actor, { kind: BridgeInstanceKind, id, scope, spec, expectedVersion: 0 }),
    )
    return id
  }

  /** @throws Fault `bridge_not_found`, `bridge_invalid`, `bridge_read_only`, `bridge_transition` and those of {@link Edits.#judge} */
  async patch(id: string, body: PatchBridgeBody, actor: Actor): Promise<void> {
    const { spec: before } = this.instances.found(id, actor)
    if (body.provider_config !== undefined) {
      const { extension_name: extension, platform } = before
      const provider = this.instances.providerOf({ extension, platform })
      // Without its adapter the schema is unknown; `verify` checks the settings once it runs.
      if (provider) await this.#judge(provider, body.provider_config)
    }
    if (body.degradation && body.clear_degradation)
      throw BridgeErrors.bridge_invalid('degradation: not allowed together with clear_degradation')
    await this.kernel.db.tx(t => {
      const record = this.instances.found(id, actor)
      const changes = changesOf(body)
      if (changes) {
        if (isPackaged(record)) throw BridgeErrors.bridge_read_only()
        const spec = { ...record.spec, ...changes }
        this.kernel.records.put(t, actor, writeOf(record, checked({ id, scope: record.scope, spec })))
      }
      const isClear = body.clear_degradation === true || body.degradation === null
      if (!body.degradation && !isClear) return
      const { status } = this.instances.getVisible(id)
      if (isClear && status === 'degraded') this.instances.move(t, id, { status: 'ready' })
      else if (isClear) this.instances.change(t, id, { reason: undefined, message: undefined })
      else if (!body.degradation || (status !== 'ready' && status !== 'degraded'))
        throw BridgeErrors.bridge_transition(`a bridge that is ${status} cannot become degraded`, {
          next: command('bridge get', id),
        })
      else this.instances.move(t, id, { status: 'degraded', ...body.degradation })
    })
  }

  /** Enables or disables an instance; idempotent. @throws Fault `bridge_not_found` */
  async enable(id: string, enabled: boolean, actor: Actor): Promise<void> {
    this.instances.found(id, actor)
    await this.kernel.db.tx(t => {
      const record = this.instances.found(id, actor)
      if (this.instances.getVisible(id).enabled === enabled) return
      const status = enabled ? 'starting' : 'disabled'
      if (isPackaged(record)) {
        // Each activation of the package rewrites its record, so the operator's choice is stored separately.
        states.update(t, { id }, { enabled })
        this.instances.move(t, id, { status })
        this.kernel.needs.reconcile.mark([{ kind: BridgeInstanceKind.name, id }])
      } else this.kernel.records.put(t, actor, writeOf(record, { ...record.spec, enabled, status }))
    })
  }

  /**
   * Validates a configuration against its adapter's schema. @throws Fault `bridge_config_invalid`,
   * `bridge_schema_unusable`
   */
  async #judge(provider: BridgeProvider, config: Readonly<Record<string, unknown>> | null | undefined): Promise<void> {
    const problem = await this.configs.problem(provider, config ?? {})
    if (!problem) return
    throw problem.of === 'config'
      ? BridgeErrors.bridge_config_invalid(problem.text)
      : BridgeErrors.bridge_schema_unusable(problem.text, { next: command('extension info', provider.extension) })
  }

  async #scopeOf(kind: 'global' | 'workspace', workspace: string | undefined, actor: Actor): Promise<RecordScope> {
    if (kind === 'global') {
      if (workspace) throw BridgeErrors.bridge_invalid('workspace_id: must be empty for scope global')
      return { kind }
    }
    if (!workspace) throw BridgeErrors.bridge_invalid('workspace_id: required for scope workspace')
    const { maxScope } = actor
    const found = await this.kernel.needs.workspaces.find(workspace)
    if (maxScope?.kind === 'workspace' && maxScope.id !== found.id)
      throw BridgeErrors.bridge_invalid(`workspace_id: ${shown(workspace)} is not the workspace of the caller`)
    return { kind, id: found.id }
  }
}

const whereOf = ({ kind, id }: RecordScope) => ({
  scope: kind,
  ...(id === undefined ? {} : { workspace_id: id }),
})

const writeOf = ({ id, scope, owner, version }: InstanceRecord, spec: unknown) => ({
  kind: BridgeInstanceKind,
  id,
  scope,
  spec,
  owner,
  expectedVersion: version,
})

/** The changed members of a PATCH; undefined if there are none. */
function changesOf(body: PatchBridgeBody): Partial<BridgeInstanceSpec> | undefined {
  const changes = SPEC.flatMap(name => {
    const value = body[name]
    return value === undefined || (value === null && !CLEARED.has(name)) ? [] : [[name, value] as const]
  })
  return changes.length === 0 ? undefined : (Object.fromEntries(changes) as Partial<BridgeInstanceSpec>)
}

/** The spec, validated by its kind. @throws Fault `bridge_invalid` */
function checked({ id, scope, spec }: { readonly id: string; readonly scope: RecordScope; readonly spec: unknown }) {
  const decoded = v.safeParse(BridgeInstanceSpec, spec)
  if (!decoded.success) {
    const [issue] = decoded.issues
    throw BridgeErrors.bridge_invalid(`${issueLine(issue, 'bridge')}`)
  }
  const { output } = decoded
  const judged = { ...output, status: output.status ?? (output.enabled ? 'starting' : 'disabled') } as const
  const problem = BridgeInstanceKind.check?.({ id, scope, spec: judged })
  if (problem !== undefined) throw BridgeErrors.bridge_invalid(problem)
  return judged
}
