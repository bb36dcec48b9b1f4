import { createHash } from 'node:crypto'
import valid from 'semver/functions/valid.js'
import * as v from 'valibot'
import { secretRef } from '../../../../kernel/kit/secret-ref.js'
import { text } from '../../../../kernel/kit/text.js'
import { isDropIn } from '../../../../kernel/platform.js'
import { operator } from '../../../../kernel/plugin.js'
import { mapOf } from '../../../../schemas/kernel/map-of.js'
import { SandboxName } from '../../../../schemas/settings/entries.js'
import { hostMethods } from './permissions.js'

/** Versions of the plugin API that a manifest with `main` may name, oldest first. */
export const API_VERSIONS = [1, 2] as const
export type ApiVersion = (typeof API_VERSIONS)[number]
/** The version of new extensions. */
export const API_VERSION: ApiVersion = 2

/** The source tier of an extension, which limits the permissions it may be granted. */
export type SourceTier = 'bundled' | 'user' | 'workspace' | 'marketplace'

/** Provisions of processes, with the methods that each requires. */
export const provisions = {
  'tool.provider': ['provide_tools', 'tools/call'],
  'memory.backend': ['memory/store', 'memory/recall', 'memory/forget'],
  'model.source': ['models/list'],
  'loop.watch_source': ['watch/poll'],
  'bridge.adapter': ['bridges/deliver', 'bridges/targets/snapshot'],
} as const
export type Provision = keyof typeof provisions

/** Provisions whose processes run only when their owning plugin needs them, and never without it. */
export const ownedProvisions: ReadonlySet<Provision> = new Set(['bridge.adapter'])

/** Families of records that an extension may publish, with their kinds. */
export const publishFamilies = { window_layouts: 'window_layout' } as const

/** Multi-line text without other control characters. */
const prose = (max: number) =>
  v.pipe(text(max, 0), v.regex(/^(?:[^\p{Cc}]|[\t\n\r])*$/u, 'a text without control characters'))
const line = (max: number) => v.pipe(text(max), v.regex(/^[^\p{Cc}]*$/u, 'control characters'))
const list = <T>(of: v.GenericSchema<unknown, T>, max = 256) => v.optional(v.pipe(v.array(of), v.maxLength(max)), [])
const NAME = /^[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?)?$/
const version = v.pipe(
  text(160, 0),
  v.check(text => valid(text) === text.replace(/\+.*$/, ''), 'a version is written 1.2.3'),
)
const ENV_NAME = /^[A-Za-z_][A-Za-z0-9_]{0,127}$/
const envName = v.pipe(v.string(), v.regex(ENV_NAME, 'a name of an environment variable'))
const duration = v.pipe(v.string(), v.regex(/^(?:\d{1,6}(?:ms|s|m|h))+$/, 'a duration is written 30s or 1h30m'))
const key = v.pipe(v.string(), v.regex(/^[a-z0-9][a-z0-9_-]{0,63}$/i, 'a name of letters, digits, _ and -'))
const env = (value: v.GenericSchema<unknown, string>) => v.optional(mapOf(envName, value), {})
export const Reference = secretRef({ env: '', vault: '' })

/** A path below the extension's folder, with `/`; symlinks are checked when it is opened, see `resolveInside`. */
export const RelativePath = v.pipe(
  v.string(),
  v.minLength(1),
  v.maxLength(1024),
  v.check(
    path => !/^([/\\~]|[A-Za-z]:)|[\\\p{Cc}]/u.test(path) && !path.split('/').includes('..'),
    'a path inside of the extension: relative, with /, without ..',
  ),
)
/** A path below the folder, or the bare name of a program in the PATH. */
const program = v.pipe(v.string(), v.minLength(1), v.maxLength(1024))
const jsonText = v.pipe(
  v.string(),
  v.maxLength(64 * 1024),
  v.check(isJsonObject, 'the text of a JSON object, a JSON Schema'),
)

const McpServerMembers = v.strictObject({
  command: v.optional(program),
  args: list(text(8192, 0)),
  env: env(text(8192, 0)),
  secret_env: env(Reference),
  transport: v.optional(v.picklist(['stdio', 'http', 'sse'])),
  url: v.optional(line(2048)),
  headers: v.optional(mapOf(line(128), text(8192, 0)), {}),
  secret_headers: v.optional(mapOf(line(128), Reference), {}),
  sandbox: SandboxName,
})
const McpServer = v.pipe(
  McpServerMembers,
  v.check(s => (s.command === undefined) !== (s.url === undefined), 'an MCP server has either a command or a url'),
  v.check(s => s.sandbox === undefined || s.command !== undefined, 'only an MCP server with a command has a sandbox'),
)

const Hook = v.strictObject({
  name: key,
  event: line(128),
  mode: v.optional(v.picklist(['sync', 'async'])),
  required: v.optional(v.boolean()),
  priority: v.optional(v.pipe(v.number(), v.integer(), v.minValue(-10_000), v.maxValue(10_000)), 300),
  timeout: v.optional(duration),
  matcher: v.optional(mapOf(line(128), v.unknown())),
  /** Without a command, the extension's process handles the hook. */
  command: v.optional(program),
  args: list(text(8192, 0)),
  env: env(text(8192, 0)),
  secret_env: env(Reference),
})

const Tool = v.strictObject({
  id: line(128),
  handler: line(128),
  backend: v.optional(v.strictObject({ kind: v.literal('extension_host') })),
  description: v.optional(prose(4096)),
  input_schema: v.optional(jsonText),
  output_schema: v.optional(jsonText),
  risk: v.optional(v.picklist(['read', 'mutating', 'open_world', 'destructive'])),
  read_only: v.optional(v.boolean()),
  destructive: v.optional(v.boolean()),
  open_world: v.optional(v.boolean()),
  requires_interaction: v.optional(v.boolean()),
  concurrency_safe: v.optional(v.boolean()),
  max_result_bytes: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(64 * 1024 * 1024))),
  toolsets: list(line(128)),
  tags: list(line(128)),
  visibility: v.optional(line(64)),
  required_capabilities: list(line(128)),
  requires_env: list(envName),
  command: v.optional(v.strictObject({ verb: key, summary: v.optional(line(200)), example: v.optional(line(400)) })),
})

const flag = (about: string) => v.optional(v.pipe(v.boolean(), v.description(about)), false)

/** A secret that a platform needs; the vault stores its value. */
const SecretSlot = v.strictObject({
  name: v.pipe(v.string(), v.regex(/^[a-z][a-z0-9_]{0,63}$/, 'a name of a-z, 0-9 and _')),
  kind: v.optional(line(64), 'secret'),
  description: v.optional(prose(2000)),
  required: v.optional(v.boolean()),
})

/** A platform that the process connects to, with its capabilities. */
const Bridge = v.pipe(
  v.strictObject({
    platform: key,
    display_name: line(128),
    description: v.optional(prose(2000)),
    edits: flag('sent messages can be edited, so that an answer grows in place'),
    can_settle: flag('the process can find out whether a message arrived after an unknown result'),
    threads: flag('the platform has threads below its rooms'),
    authenticates_senders: flag(
      'the platform authenticates senders; without it, permission questions cannot be answered there',
    ),
    typing: flag('the platform shows typing indicators: the process accepts the event typing'),
    fences: flag('the platform renders code fences: a fence cut by a split is closed and reopened'),
    text_limit: v.optional(
      v.pipe(
        v.number(),
        v.integer(),
        v.minValue(1),
        v.maxValue(1024 * 1024),
        v.description('longest text of one message'),
      ),
      2000,
    ),
    text_unit: v.optional(
      v.pipe(v.picklist(['bytes', 'utf16', 'code_points']), v.description('unit of text_limit')),
      'code_points',
    ),
    config_schema: v.optional(v.pipe(RelativePath, v.description('file with the JSON Schema of provider_config'))),
    secret_slots: list(SecretSlot, 32),
  }),
  v.check(
    ({ secret_slots: slots }) => new Set(slots.map(({ name }) => name)).size === slots.length,
    'two secret slots have one name',
  ),
)

const Fields = {
  name: v.pipe(
    v.string(),
    v.regex(NAME, 'a name of lower-case letters, digits and -, with at most one dot: things or vendor.things'),
  ),
  version,
  description: v.optional(prose(2000)),
  min_svc_version: v.optional(version),
  requires_env: list(envName),
  apiVersion: v.optional(v.picklist(API_VERSIONS)),
  main: v.optional(RelativePath),
  replaces: v.optional(line(64)),
  capabilities: v.optional(v.strictObject({ provides: list(v.picklist(Object.keys(provisions) as Provision[])) }), {}),
  permissions: v.optional(
    v.strictObject({
      requires: list(
        v.pipe(
          v.string(),
          v.check(name => hostMethods.has(name), 'there is no such method of the Host API; sessions/list is one'),
        ),
      ),
    }),
    {},
  ),
  subprocess: v.optional(
    v.strictObject({
      command: program,
      args: list(text(8192, 0)),
      health_check_interval: v.optional(duration),
      shutdown_timeout: v.optional(duration),
      env: env(text(8192, 0)),
      secret_env: env(Reference),
    }),
  ),
  resources: v.optional(
    v.strictObject({
      skills: list(RelativePath),
      agents: list(RelativePath),
      bundles: list(RelativePath),
      mcp_servers: v.optional(mapOf(key, McpServer), {}),
      hooks: list(Hook),
      /** Events for triggers: `ext.<extension>.<name>`. */
      events: list(key),
      publish: v.optional(
        v.strictObject({
          families: list(v.picklist(Object.keys(publishFamilies) as (keyof typeof publishFamilies)[])),
          max_scope: v.optional(v.picklist(['global', 'workspace']), 'global'),
        }),
      ),
    }),
    {},
  ),
  tools: list(Tool),
  bridge: v.optional(Bridge),
  network_participation: v.optional(
    v.strictObject({
      required: v.boolean(),
      mode: v.optional(v.literal('live')),
      channel_scopes: v.optional(v.pipe(v.array(line(128)), v.maxLength(256))),
    }),
  ),
}

const rule = (says: string, path: string[], holds: (manifest: v.InferOutput<typeof Shape>) => boolean) =>
  v.rawCheck<v.InferOutput<typeof Shape>>(({ dataset, addIssue }) => {
    if (!dataset.typed || holds(dataset.value)) return
    const { value } = dataset
    const [head = ''] = path
    // The key can be missing; the first part of the path leads to the table that lacks it.
    addIssue({ message: says, path: [{ type: 'object', origin: 'value', input: value, key: head, value: undefined }] })
  })

/** A rule for each entry of a list; the issue points to a member of the entry. */
function entryRule(
  says: string,
  path: readonly string[],
  member: string,
  holds: (manifest: v.InferOutput<typeof Shape>, at: number) => boolean,
) {
  return v.rawCheck<v.InferOutput<typeof Shape>>(({ dataset, addIssue }) => {
    if (!dataset.typed) return
    const { value } = dataset
    const step = (input: unknown, key: string) =>
      ({ type: 'object', origin: 'value', input: Object(input), key, value: Object(input)[key] }) as const
    const steps: ReturnType<typeof step>[] = []
    for (const key of path) steps.push(step(steps.at(-1)?.value ?? value, key))
    const list = steps.at(-1)?.value as unknown[]
    for (const [at, entry] of list.entries()) {
      if (holds(value, at)) continue
      const item = { type: 'array', origin: 'value', input: list, key: at, value: entry } as const
      addIssue({ message: says, path: [...steps, item, step(entry, member)] as never })
    }
  })
}

const isFirst = (names: readonly string[], at: number) => names.indexOf(names[at] as string) === at

const Shape = v.strictObject(Fields)
const needsProcess = ({ capabilities, permissions, tools }: v.InferOutput<typeof Shape>) =>
  capabilities.provides.length + permissions.requires.length + tools.length > 0

/** The name under which requests of the operator write: records of an extension could not be told apart by their source's id. */
export const RESERVED_NAME = operator.source.id

/** The schema of a manifest, with the file's keys; core keys are moved to the root. */
export const Manifest = v.pipe(
  Shape,
  rule(
    `with main it says apiVersion = ${API_VERSION}`,
    ['main'],
    m => m.main === undefined || m.apiVersion !== undefined,
  ),
  rule(`${RESERVED_NAME} is reserved for the daemon`, ['name'], m => m.name !== RESERVED_NAME),
  rule('an extension with main is named vendor.things', ['name'], m => m.main === undefined || isDropIn(m.name)),
  rule('only an extension with main replaces a plugin', ['replaces'], m => !m.replaces || m.main !== undefined),
  rule(
    'provides, permissions and tools need a process: say [subprocess] command',
    ['subprocess'],
    m => !needsProcess(m) || m.subprocess !== undefined,
  ),
  rule(
    '[bridge] and provides = ["bridge.adapter"] go together',
    ['bridge'],
    m => (m.bridge !== undefined) === m.capabilities.provides.includes('bridge.adapter'),
  ),
  rule(
    'required = true goes with mode = "live"; required = false has neither mode nor channel_scopes',
    ['network_participation'],
    ({ network_participation: net }) =>
      !net || (net.required ? net.mode === 'live' : net.mode === undefined && net.channel_scopes === undefined),
  ),
  entryRule('another tool before it has this id', ['tools'], 'id', ({ name, tools }, at) =>
    isFirst(
      tools.map(tool => toolId(name, tool.id)),
      at,
    ),
  ),
  entryRule('another hook before it has this name', ['resources', 'hooks'], 'name', ({ resources: { hooks } }, at) =>
    isFirst(
      hooks.map(({ name }) => name),
      at,
    ),
  ),
  entryRule(
    'a hook has a command, or is answered by the process of [subprocess]',
    ['resources', 'hooks'],
    'command',
    ({ subprocess, resources: { hooks } }, at) => subprocess !== undefined || hooks[at]?.command !== undefined,
  ),
)
export type Manifest = v.InferOutput<typeof Manifest> & {
  /** Unusable entries, each with its place and the reason. */
  readonly leftOut?: readonly string[]
}

/**
 * Id of an extension's tool, `ext__<extension>__<tool>`: lower-case letters and digits, all other characters collapse
 * to one `_`.
 */
export function toolId(extension: string, tool: string): string {
  const segment = (text: string) =>
    text
      .toLowerCase()
      .replace(/[^a-z0-9]+/g, '_')
      .replace(/^_+|_+$/g, '')
  return `ext__${segment(extension)}__${segment(tool)}`
}

/**
 * Digest of a network requirement, which the operator confirms: SHA-256, hex, of its compact JSON with sorted, unique scopes;
 * empty if nothing is required.
 */
export function requirementDigest({ network_participation: net }: Pick<Manifest, 'network_participation'>): string {
  if (!net?.required) return ''
  const scopes = [...new Set(net.channel_scopes ?? [])].sort()
  const body = JSON.stringify({ required: true, mode: 'live', channel_scopes: scopes })
  return createHash('sha256').update(body).digest('hex')
}

/** The type shown in lists: with a process, with code in the daemon, or with resources only. */
export function typeOf(manifest: Manifest): 'subprocess' | 'plugin' | 'resource' {
  if (manifest.subprocess) return 'subprocess'
  return manifest.main === undefined ? 'resource' : 'plugin'
}

function isJsonObject(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value)
  } catch {
    return false
  }
}

/** Variables in `requires_env` of the extension and its tools that the manifest does not set itself. */
export function askedFor({ requires_env, tools, subprocess }: Manifest): string[] {
  const all = new Set([...requires_env, ...tools.flatMap(tool => tool.requires_env)])
  const filled = { ...subprocess?.env, ...subprocess?.secret_env }
  return [...all].filter(name => !Object.hasOwn(filled, name))
}
