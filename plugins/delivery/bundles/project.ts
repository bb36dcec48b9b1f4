import type { RecordScope } from '../../../kernel/plugin.js'
import type { AgentSpec } from '../../agents/agents/api.js'
import { derivedId } from './ids.js'
import type { BridgePreset, JobPreset, TriggerPreset } from './manifest.js'

/** An agent as packaged in its folder; the sidecars are the full text of their files. */
export interface PackagedAgent {
  readonly spec: AgentSpec
  readonly soul?: string
  readonly heartbeat?: string
}

/** A layout as packaged in its file; its kind's codec checks the spec. */
export interface PackagedLayout {
  readonly id: string
  readonly spec: Readonly<Record<string, unknown>>
}

/** The content of a profile that is projected to records. */
export interface ProfileContent {
  readonly agents: readonly PackagedAgent[]
  readonly layouts: readonly PackagedLayout[]
  readonly jobs: readonly JobPreset[]
  readonly triggers: readonly TriggerPreset[]
  readonly bridges: readonly BridgePreset[]
}

/** The activation that a profile is projected for. */
export interface ProjectionTarget {
  readonly activationId: string
  readonly scope: RecordScope
  readonly extension: string
  /** Key of the extension. */
  readonly key: string
  readonly bundle: string
  readonly profile: string
  /** Platform of the extension's own adapter; the default of a bridge preset without one. */
  readonly platform?: string | undefined
}

/** A record to project, with its place in the manifest. */
export interface Projected {
  readonly kind: keyof typeof RANK
  readonly id: string
  readonly spec: Readonly<Record<string, unknown>>
  /** `agents.0` */
  readonly at: string
}

/** Order of kinds in an inventory: layouts, then agent by agent, jobs, triggers, bridges. */
const RANK = {
  window_layout: 0,
  agent: 1,
  'agent.soul': 1,
  'agent.heartbeat': 1,
  'automation.job': 2,
  'automation.trigger': 3,
  'bridge.instance': 4,
} as const

/** The kinds of records that activations project. */
export const projectedKinds = Object.keys(RANK) as (keyof typeof RANK)[]

/** All records that an activation of a profile projects, in inventory order. */
export function project(content: ProfileContent, target: ProjectionTarget): Projected[] {
  const { activationId, scope, extension, key, bundle, profile } = target
  const workspace = scope.kind === 'workspace' ? scope.id : undefined
  const where = workspace === undefined ? { scope: 'global' } : { scope: 'workspace', workspace_id: workspace }
  const id = (kind: keyof typeof RANK, name: string) => derivedId(kind, activationId, name)
  const qualified = (name: string) => [extension, bundle, profile, name].join('/')

  const layouts = content.layouts.map(({ id: authored, spec }, n): Projected => {
    const own = id('window_layout', authored)
    const document = { ...(spec.document as object), workspace_id: workspace ?? '' }
    return { kind: 'window_layout', id: own, spec: { ...spec, id: own, document }, at: `layouts.${n}` }
  })

  const agents = content.agents.flatMap(({ spec, soul, heartbeat }, n): Projected[] => {
    const { name } = spec
    const agent_id = id('agent', name)
    const path = (file: string) => `.svc/bundles/${activationId}/agents/${name}/${file}`
    const sidecar = (kind: 'agent.soul' | 'agent.heartbeat', file: string, content: string): Projected => ({
      kind,
      id: id(kind, name),
      spec: { agent_id, agent_name: name, content, source_path: path(file) },
      at: `agents.${n}`,
    })
    return [
      {
        kind: 'agent',
        id: agent_id,
        spec: { ...spec, source_path: path('AGENT.md'), extension: key },
        at: `agents.${n}`,
      },
      ...(soul === undefined ? [] : [sidecar('agent.soul', 'SOUL.md', soul)]),
      ...(heartbeat === undefined ? [] : [sidecar('agent.heartbeat', 'HEARTBEAT.md', heartbeat)]),
    ]
  })

  const definitions = <K extends 'automation.job' | 'automation.trigger'>(
    kind: K,
    presets: readonly (JobPreset | TriggerPreset)[],
    list: string,
  ) =>
    presets.map((preset, n): Projected => {
      const { name, agent, agent_name = agent, description: _, loop_target: loop, ...rest } = preset
      const own = id(kind, name)
      // The workspace of a loop is set here: a bundle cannot know where it will be activated.
      const target = loop && { loop_target: workspace === undefined ? loop : { ...loop, workspace_id: workspace } }
      const spec = { ...rest, ...(agent_name && { agent_name }), ...target, id: own, name: qualified(name), ...where }
      return { kind, id: own, spec, at: `${list}.${n}` }
    })

  const bridges = content.bridges.map((preset, n): Projected => {
    const { name, description: _, extension_name = extension, platform = target.platform, ...rest } = preset
    const own = id('bridge.instance', name)
    const fields = { ...rest, ...(platform === undefined ? {} : { platform }) }
    const off = { enabled: false, status: 'disabled', source: 'package' }
    const spec = { ...fields, id: own, name, extension_name, ...off, ...where }
    return { kind: 'bridge.instance', id: own, spec, at: `bridges.${n}` }
  })

  return [
    ...layouts,
    ...agents,
    ...definitions('automation.job', content.jobs, 'jobs'),
    ...definitions('automation.trigger', content.triggers, 'triggers'),
    ...bridges,
  ]
}

/** Sort key of a record in an inventory. An agent is followed by its own sidecars. */
export function inventoryOrder(record: { readonly kind: string; readonly id: string; readonly spec: unknown }): string {
  const rank = RANK[record.kind as keyof typeof RANK] ?? 9
  const spec = record.spec as { name?: string; agent_name?: string }
  const group = rank === 1 ? (spec.agent_name ?? spec.name ?? '') : ''
  return [rank, group, projectedKinds.indexOf(record.kind as keyof typeof RANK), record.id].join('\n')
}
