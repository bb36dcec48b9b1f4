import { type Clock, iso, type Redact } from '../../../kernel/plugin.js'
import type * as wire from '../../../schemas/extensions.js'
import type { ShippedItem } from './api.js'
import { itemsOf } from './checks.js'
import { placeOf } from './identity.js'
import { type Shipped, itemsOf as shipments, shippedKeys } from './load/families.js'
import type { Instance } from './load/instance.js'
import { type Manifest, requirementDigest, toolId, typeOf } from './manifest/manifest.js'

/** The daemon's environment. */
export type Env = Readonly<Record<string, string | undefined>>

/** Wire form of an extension. */
export function extensionToWire(instance: Instance, env: Env, clock: Clock): wire.Extension {
  const { name, link, status, enabled, problem, generation, waits } = instance
  const manifest = generation?.manifest ?? manifestOf(instance)
  const inFolder = manifestOf(instance)?.version
  const health = generation?.runtime?.health()
  const bundles = instance.items.filter(({ kind }) => kind === 'bundle')
  return {
    name,
    version: manifest?.version ?? '',
    ...optional('folder_version', inFolder === manifest?.version ? undefined : inFolder),
    type: manifest ? typeOf(manifest) : 'resource',
    state: status,
    enabled,
    source: instance.tier(),
    daemon_running: true,
    actions: enabled ? ['disable', 'reload'] : ['enable'],
    capabilities: [...(manifest?.capabilities.provides ?? [])],
    requires_env: [...(manifest?.requires_env ?? [])],
    missing_env: manifest ? missingEnv(manifest, env) : [],
    diagnostics: itemsOf(instance),
    health: healthOf(instance),
    ...optional('health_message', health?.message ?? waits),
    ...optional('last_error', problem?.message),
    ...optional('pid', health?.pid),
    ...optional('workspace_id', link && placeOf(instance)),
    ...optional('origin_path', link && instance.found.root),
    ...(health?.startedAt === undefined
      ? {}
      : { uptime_seconds: Math.max(0, Math.floor((clock.now() - health.startedAt) / 1000)) }),
    ...(bundles.length > 0 ? { bundles: bundles.map(bundle => ({ name: bundle.name })) } : {}),
  }
}

/** Wire form of a developer's link. */
export function devToWire(
  instance: Instance,
  about: { env: Env; clock: Clock; wanted: string | undefined; bound: readonly string[] },
): wire.DevExtension {
  const base = extensionToWire(instance, about.env, about.clock)
  const { actions: _, bundles: __, provenance: ___, ...common } = base
  const { generation, problem } = instance
  const manifest = manifestOf(instance)
  const health = generation?.runtime?.health()
  const hash = generation?.hash ?? generation?.digest
  const digest = manifest ? requirementDigest(manifest) : ''
  return {
    ...common,
    bound_env_keys: [...about.bound],
    consecutive_failures: health?.consecutiveFailures ?? 0,
    restart_backoff_ms: Math.round(health?.restartBackoffMs ?? 0),
    format: 'directory',
    digest_matched: about.wanted === undefined || about.wanted === hash,
    update_available: false,
    network_confirmation_required: problem?.code === 'extension_network_unconfirmed',
    network_requirement_digest: digest,
    permissions: [...(manifest?.permissions.requires ?? [])],
    origin_path: instance.found.root,
    ...optional('generation_hash', hash),
    ...optional('failure_code', problem && (generation ? 'activation_failed' : problem.code)),
  }
}

/** The items of an extension, including those without a family yet. */
export function inventoryOf(instance: Instance): wire.ExtensionInventoryReply {
  return {
    extension: instance.name,
    enabled: instance.enabled,
    format: 'directory',
    items: [...shippedItems(instance), ...instance.published].map(item => ({ ...item })),
    diagnostics: itemsOf(instance),
  }
}

function shippedItems(instance: Instance): ShippedItem[] {
  const { generation, status } = instance
  const manifest = manifestOf(instance)
  if (!manifest) return []
  const running = status === 'active'
  const code = instance.installed?.code?.surface
  const own = (kind: string, names: readonly string[] | undefined): ShippedItem[] =>
    (names ?? []).map(name => ({ kind, id: name, name, live: running && generation !== undefined }))
  return [
    ...instance.items,
    ...waitingItems(manifest, instance.readKeys),
    ...own(
      'route',
      code?.routes?.map(({ method, path }) => `${method} ${path}`),
    ),
    ...own(
      'kind',
      code?.kinds?.map(kind => kind.name),
    ),
    ...own(
      'command',
      code?.commands?.map(({ path }) => path),
    ),
  ]
}

/** Items in the manifest that no family has read. */
function waitingItems(manifest: Manifest, read: readonly string[]): ShippedItem[] {
  const shipped: Record<string, unknown> = { ...manifest.resources, tools: manifest.tools }
  return shippedKeys(manifest).flatMap(key => {
    if (read.includes(key)) return []
    const value = shipped[key]
    const names = Array.isArray(value) ? value.map(nameOf) : Object.keys(value as object)
    return names.map(name => ({ kind: key, id: name, name, live: false }))
  })
}

/** Name of an entry: a path, or a table with a name or an id. */
const nameOf = (entry: string | { readonly name?: string; readonly id?: string }): string =>
  typeof entry === 'string' ? entry : (entry.name ?? entry.id ?? '')

/** Changes by enabling an extension, planned or made. */
export function previewOf(instance: Instance, planned: Shipped, env: Env): wire.ExtensionPreviewReply {
  const manifest = manifestOf(instance)
  const digest = manifest ? requirementDigest(manifest) : ''
  const keyOf = ({ kind, id }: ShippedItem) => `${kind}\n${id}`
  const there = new Map(shippedItems(instance).map(item => [keyOf(item), item]))
  const wanted = new Map(shipments(planned).map(item => [keyOf(item), item]))
  // Without a loaded generation, items that wait for a family are part of the plan.
  const rest = [...there.values()].filter(
    item => !wanted.has(keyOf(item)) && !planned.some(({ family }) => family.name === item.kind),
  )
  const isRead = (item: ShippedItem) => instance.items.includes(item)
  const change = (item: ShippedItem) => {
    if (!there.get(keyOf(item))?.live) return 'add'
    return wanted.has(keyOf(item)) || !isRead(item) ? 'unchanged' : 'remove'
  }
  return {
    extension: instance.name,
    agent_conflicts: planned.flatMap(({ shipment }) => shipment.agentConflicts ?? []),
    automation_starting: planned.flatMap(({ shipment }) => shipment.automationStarting ?? []),
    changes: [...wanted.values(), ...rest].map(item => ({
      kind: item.kind,
      id: item.id,
      name: item.name,
      change: change(item),
    })),
    missing_env: manifest ? missingEnv(manifest, env) : [],
    network_confirmation_required: digest !== '',
    network_requirement_digest: digest,
  }
}

/** Log entries of an extension after a sequence number. */
export function logsOf(
  { generation, log }: Instance,
  after: number,
  epoch: string | undefined,
  redact: Redact,
): wire.ExtensionLogsReply {
  const { epoch: current } = log
  // Sequence numbers are only comparable within one epoch.
  const from = epoch === undefined || epoch === current ? after : 0
  return {
    stream_epoch: current,
    logs: log
      .entries()
      .filter(({ sequence }) => sequence > from)
      .map(({ sequence, at, message }) => ({
        sequence,
        message: redact.text(message),
        timestamp: iso(at),
        stream_epoch: current,
        ...optional('generation_hash', generation?.hash),
      })),
  }
}

/** Names of all variables that a manifest requests or puts secrets into. */
export function declaredEnv({ requires_env, subprocess, tools, resources }: Manifest): string[] {
  const inServers = Object.values(resources.mcp_servers).flatMap(server => Object.keys(server.secret_env))
  const inHooks = resources.hooks.flatMap(hook => Object.keys(hook.secret_env))
  const inTools = tools.flatMap(tool => tool.requires_env)
  const all = [...requires_env, ...Object.keys(subprocess?.secret_env ?? {}), ...inServers, ...inHooks, ...inTools]
  return [...new Set(all)].sort()
}

/** Commands from tools of extensions, by extension and verb. */
export function commandsOf(instances: readonly Instance[], only: string | undefined): wire.ExtensionCommandsReply {
  const shown = instances.filter(({ name, status }) => status === 'active' && (only === undefined || only === name))
  const commands = shown.flatMap(instance => {
    const manifest = manifestOf(instance)
    return (manifest?.tools ?? []).flatMap(tool =>
      tool.command
        ? [
            {
              extension: instance.name,
              tool_id: toolId(instance.name, tool.id),
              verb: tool.command.verb,
              summary: tool.command.summary ?? tool.description ?? '',
              ...optional('example', tool.command.example),
              risk_class: tool.risk ?? (tool.read_only ? ('read' as const) : ('mutating' as const)),
              approval_required: tool.destructive ?? false,
              flags: flagsOf(tool.input_schema),
            },
          ]
        : [],
    )
  })
  const groups = shown
    .filter(({ name }) => commands.some(({ extension }) => extension === name))
    .map(instance => ({
      extension: instance.name,
      path: instance.name,
      summary: manifestOf(instance)?.description ?? '',
    }))
  return { commands, groups }
}

interface Property {
  readonly type?: unknown
  readonly default?: unknown
  readonly enum?: unknown
  readonly minimum?: number
  readonly maximum?: number
}

function flagsOf(schema: string | undefined): wire.ExtensionCommandsReply['commands'][number]['flags'] {
  if (schema === undefined) return []
  const { properties = {}, required = [] } = JSON.parse(schema) as {
    properties?: Record<string, Property>
    required?: string[]
  }
  return Object.entries(properties).map(([field, property]) => {
    const types = [property.type].flat().map(String)
    const values = Array.isArray(property.enum) ? property.enum.filter(value => typeof value === 'string') : undefined
    return {
      field,
      name: field.replaceAll('_', '-'),
      nullable: types.includes('null'),
      repeatable: types.includes('array'),
      required: required.includes(field),
      type: types.find(type => type !== 'null' && type !== 'undefined') ?? 'string',
      ...optional('enum', values),
      ...optional('default', property.default),
      ...optional('minimum', property.minimum),
      ...optional('maximum', property.maximum),
    }
  })
}

export const manifestOf = ({ found, generation }: Instance): Manifest | undefined =>
  'fault' in found ? generation?.manifest : found.manifest

const missingEnv = ({ requires_env }: Manifest, env: Env): string[] =>
  requires_env.filter(name => (env[name] ?? '') === '')

function healthOf({ status, generation, problem }: Instance): string {
  if (status === 'error' || problem) return 'unhealthy'
  if (generation?.runtime) return generation.runtime.health().health
  return status === 'active' ? 'healthy' : 'unknown'
}

const optional = <K extends string, T>(key: K, value: T | undefined) =>
  (value === undefined ? {} : { [key]: value }) as { [P in K]?: T }
