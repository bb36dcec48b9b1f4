import * as v from 'valibot'
import { secretRef } from '../../../../kernel/kit/secret-ref.js'
import { text } from '../../../../kernel/kit/text.js'
import { AgentSkills, PermissionMode, ReasoningEffort } from '../../../../schemas/agents.js'
import { StringMap } from '../../../../schemas/kernel/common.js'
import { McpServerPolicy, SandboxName } from '../../../../schemas/settings/entries.js'

/** Names of agents: a folder's name and a part of peer ids, so lower case and short. */
export const AGENT_NAME = /^[a-z0-9][a-z0-9_-]{0,63}$/

/** Names reserved for the daemon's own agents; files may not use them. */
export const RESERVED_NAMES: ReadonlySet<string> = new Set(['coordinator', 'dreaming-curator'])

/** `service__skill_list`, or a prefix pattern: `mcp__git__*`. A `*` alone or in the middle is invalid. */
const TOOL = /^[a-z][a-z0-9_]*?__(?:[a-z0-9_]+\*?|\*)$/
const TOOLSET = /^[a-z0-9][a-z0-9_-]{0,63}$/

const listOf = <S extends v.GenericSchema<unknown, unknown>>(item: S, max = 256) =>
  v.pipe(v.array(item), v.maxLength(max))

const tools = listOf(
  v.pipe(
    v.string(),
    v.maxLength(256),
    v.regex(TOOL, 'a tool id like service__skill_list, or a prefix with * at its end like mcp__git__*'),
  ),
)

const segment = v.pipe(
  text(128),
  v.check(part => part !== '.' && part !== '..' && !/[/\\]/.test(part), 'a segment without /, \\, . and ..'),
)

/** Login settings of an MCP server; secrets are references. */
const McpAuthInput = v.strictObject({
  type: v.optional(text(64)),
  authorization_url: v.optional(text(2048)),
  client_id: v.optional(text(1024)),
  client_secret_ref: v.optional(secretRef({ env: '', vault: '' })),
  issuer_url: v.optional(text(2048)),
  metadata_url: v.optional(text(2048)),
  revocation_url: v.optional(text(2048)),
  scopes: v.optional(listOf(text(256))),
  token_url: v.optional(text(2048)),
})

/** An MCP server in a definition file. */
export const McpServerInput = v.pipe(
  v.strictObject({
    name: text(128),
    command: v.optional(text(4096)),
    args: v.optional(listOf(v.string())),
    env: v.optional(StringMap),
    secret_env: v.optional(StringMap),
    transport: v.optional(text(64)),
    url: v.optional(text(2048)),
    auth: v.optional(McpAuthInput),
    sandbox: SandboxName,
    ...McpServerPolicy,
  }),
  v.check(
    server => (server.command === undefined) !== (server.url === undefined),
    'give exactly one of command and url',
  ),
  v.check(
    server => server.sandbox === undefined || server.command !== undefined,
    'sandbox is only for a server that is started',
  ),
)
export type McpServerInput = v.InferOutput<typeof McpServerInput>

/** A hook in a definition; the hooks plugin validates it, here only its name is checked. */
export const HookInput = v.looseObject({ name: text(128), event: text(128) })
export type HookInput = v.InferOutput<typeof HookInput>

/** The front matter of an AGENT.md file; any other member is an error. */
export const Frontmatter = v.strictObject({
  name: v.pipe(v.string(), v.trim(), v.regex(AGENT_NAME, 'a name of a-z, 0-9, _ and -, at most 64 characters')),
  provider: v.optional(text(64)),
  command: v.optional(text(8192)),
  model: v.optional(text(256)),
  reasoning_effort: v.optional(ReasoningEffort),
  permissions: v.optional(PermissionMode),
  tools: v.optional(tools),
  toolsets: v.optional(listOf(v.pipe(v.string(), v.regex(TOOLSET, 'a toolset id like core')))),
  deny_tools: v.optional(tools),
  category_path: v.optional(listOf(segment, 16)),
  skills: v.optional(AgentSkills),
  mcp_servers: v.optional(listOf(McpServerInput, 64)),
  hooks: v.optional(listOf(HookInput, 64)),
})
export type Frontmatter = v.InferOutput<typeof Frontmatter>
