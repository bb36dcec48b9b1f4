import { follow, positionOf } from '../../../../kernel/kit/feed.js'
import { shown } from '../../../../kernel/kit/text.js'
import { type Actor, iso } from '../../../../kernel/plugin.js'
import type {
  BridgeHealth,
  BridgeHealthFrame,
  BridgeHealthQuery,
  BridgeProviderInfo,
  BridgeReply,
} from '../../../../schemas/bridges.js'
import { isElsewhere } from '../../../desk/workspaces/api.js'
import { BridgeErrors } from '../api.js'
import type { K } from '../needs.js'
import type { ConfigCheck } from './config-check.js'
import { schemaOf } from './config-fields.js'
import { type Instance, type InstanceRecord, type Instances, instanceOf } from './instances.js'
import type { Secrets } from './secrets.js'
import type { InstanceState } from './table.js'
import { bridgeOf, diagnosticsOf, healthOf } from './wire.js'

/** Maximum instances per stream. */
const STREAM_MAX = 200
/** Milliseconds within which changes of an instance are combined. */
const PACE_MS = 100

/** Filter of instances in a request. */
export interface Where {
  readonly scope?: 'all' | 'global' | 'workspace' | undefined
  /** Id of a workspace; undefined: all. */
  readonly workspaceId?: string | undefined
}

/** Health of instances, as a reply and as a stream. */
export class Health {
  constructor(
    private readonly kernel: K,
    private readonly instances: Instances,
    private readonly secrets: Secrets,
    private readonly configs: ConfigCheck,
  ) {}

  of(instance: Instance, state: InstanceState | undefined): BridgeHealth {
    const hasAdapter = this.instances.providerOf(instance) !== undefined
    const missing = instance.enabled ? this.secrets.missing(instance) : []
    return healthOf(instance, state, this.instances.figures, diagnosticsOf(instance, state, { missing, hasAdapter }))
  }

  /** An instance with its health. @throws Fault `bridge_not_found` */
  reply(id: string, actor?: Actor): BridgeReply {
    const record = this.instances.found(id, actor)
    const state = this.instances.state(id)
    return { bridge: bridgeOf(record, state), health: this.of(instanceOf(record, state), state) }
  }

  /** The available platforms. */
  async providers(): Promise<BridgeProviderInfo[]> {
    const all = this.instances.list()
    const found = this.instances.providers().map(async (provider): Promise<BridgeProviderInfo> => {
      const { platform, displayName, description, extension, secretSlots, capabilities } = provider
      const own = all.filter(one => one.extension === extension && one.platform === platform && one.enabled)
      const failing = own.filter(({ status }) => status !== 'ready' && status !== 'starting')
      const schema = await schemaOf(provider)
      const broken = await this.configs.schemaProblem(provider)
      return {
        platform,
        display_name: displayName,
        ...(description === undefined ? {} : { description }),
        extension_name: extension,
        enabled: true,
        state: own.length > 0 ? 'active' : 'registered',
        health: broken !== undefined || failing.length > 0 ? 'degraded' : 'ok',
        ...(broken !== undefined && { health_message: broken }),
        ...(failing.length > 0 && {
          health_message: `${failing.length} of ${own.length} bridges need attention: svc bridge list --platform ${platform}`,
        }),
        threads: capabilities.threads,
        config_schema: schema === undefined ? null : { schema, version: '1' },
        secret_slots: secretSlots.map(({ name, description: about, required = false }) => ({
          name,
          ...(about === undefined ? {} : { description: about }),
          required,
        })),
      }
    })
    return (await Promise.all(found)).sort((a, b) => (a.platform < b.platform ? -1 : 1))
  }

  /** Resolves the workspace of a query to an id. @throws Fault `workspace_not_found`, `bridge_invalid` */
  async where({
    scope,
    workspace,
    workspace_id,
  }: Pick<BridgeHealthQuery, 'scope' | 'workspace' | 'workspace_id'>): Promise<Where> {
    const id = workspace === undefined ? workspace_id : (await this.kernel.needs.workspaces.find(workspace)).id
    if (workspace !== undefined && workspace_id !== undefined && workspace_id !== id)
      throw BridgeErrors.bridge_invalid('workspace: differs from workspace_id')
    return { scope, workspaceId: id }
  }

  /** @throws Fault `bridge_not_found`, `bridge_invalid` */
  async stream(
    query: BridgeHealthQuery,
    actor: Actor,
    lastEventId: string | undefined,
    signal: AbortSignal,
  ): Promise<AsyncIterable<BridgeHealthFrame>> {
    const ids = [...new Set(query.bridge_ids.split(',').map(id => id.trim()))].filter(id => id !== '')
    if (ids.length === 0) throw BridgeErrors.bridge_invalid('bridge_ids: empty')
    if (ids.length > STREAM_MAX)
      throw BridgeErrors.bridge_invalid(
        `bridge_ids: names ${ids.length} bridges, more than the maximum of ${STREAM_MAX}`,
      )
    const where = await this.where(query)
    for (const id of ids) {
      const record = this.instances.found(id, actor)
      if (!isWithin(record, where))
        throw BridgeErrors.bridge_not_found(`no bridge of that scope has the id ${shown(id)}`)
    }
    return this.#frames(ids, positionOf(lastEventId), signal)
  }

  async *#frames(
    ids: readonly string[],
    after: number | undefined,
    signal: AbortSignal,
  ): AsyncGenerator<BridgeHealthFrame> {
    const { clock } = this.kernel
    const { changes } = this.instances
    const source = {
      last: () => changes.last,
      read: (position: number) => {
        const entries = changes.since(position, ids)
        return entries && { at: changes.last, entries }
      },
      snapshot: () => ({ at: changes.last, snapshot: ids }),
      next: () => changes.next(),
    }
    for await (const item of follow(source, after, signal)) {
      const isSnapshot = 'snapshot' in item
      const healthEntries = isSnapshot ? item.snapshot : item.entries
      if (healthEntries.length === 0) continue
      const { bridge_health, deleted } = this.#bodies(healthEntries)
      yield {
        id: String(item.at),
        event: isSnapshot ? 'snapshot' : 'changed',
        data: { bridge_health, ...(deleted.length > 0 && { deleted }), generated_at: iso(clock.now()) },
      }
      // Pause, so that a burst of deliveries becomes one frame.
      await clock.sleep(PACE_MS, signal).catch(() => {})
    }
  }

  #bodies(ids: readonly string[]): { bridge_health: Record<string, BridgeHealth>; deleted: string[] } {
    const bridge_health: Record<string, BridgeHealth> = {}
    const deleted: string[] = []
    for (const id of ids) {
      const instance = this.instances.get(id)
      if (instance) bridge_health[id] = this.of(instance, this.instances.state(id))
      else deleted.push(id)
    }
    return { bridge_health, deleted }
  }
}

/** Whether an instance matches a request's filter. */
export function isWithin(
  { scope }: Pick<InstanceRecord, 'scope'>,
  { scope: wanted = 'all', workspaceId }: Where,
  actor?: Actor,
): boolean {
  if (actor && isElsewhere(actor, scope)) return false
  const isOfWorkspace = scope.kind === 'workspace'
  if (wanted !== 'all' && (wanted === 'workspace') !== isOfWorkspace) return false
  // Global instances are visible in every workspace.
  return workspaceId === undefined || !isOfWorkspace || scope.id === workspaceId
}
