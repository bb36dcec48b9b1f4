/** Named entries of settings: providers and sandbox profiles. */
import * as v from 'valibot'
import { ReasoningEffort } from '../agents.js'
import { DurationText, durationMs } from '../duration.js'
import { Integer } from '../kernel/common.js'
import { mapOf } from '../kernel/map-of.js'
import { SourceMetadata } from './hooks.js'

const line = (max: number) => v.pipe(v.string(), v.maxLength(max))
const amount = v.nullish(v.pipe(v.number(), v.minValue(0)))
const count = v.nullish(v.pipe(Integer, v.minValue(0)))
const variables = mapOf(v.pipe(v.string(), v.maxLength(256)), line(32_768))

/** A manually described model. */
export const CuratedModel = v.strictObject({
  id: v.pipe(line(256), v.minLength(1)),
  context_window: count,
  cost_cache_read_per_million: amount,
  cost_cache_write_per_million: amount,
  cost_input_per_million: amount,
  cost_output_per_million: amount,
  cost_reasoning_per_million: amount,
  default_reasoning_effort: v.optional(ReasoningEffort),
  deprecated: v.nullish(v.boolean()),
  display_name: v.optional(line(200)),
  featured: v.nullish(v.boolean()),
  hidden: v.nullish(v.boolean()),
  max_input_tokens: count,
  max_output_tokens: count,
  reasoning_efforts: v.optional(v.array(ReasoningEffort)),
  release_date: v.optional(line(64)),
  supports_reasoning: v.nullish(v.boolean()),
  supports_tools: v.nullish(v.boolean()),
})
export type CuratedModel = v.InferOutput<typeof CuratedModel>

/** A relative path that stays below HOME. */
const belowHome = v.pipe(
  line(512),
  v.check(
    path => /^[^/\0]/.test(path) && path.split('/').every(part => !['', '.', '..'].includes(part)),
    'a path below HOME, without ~, . and ..',
  ),
)
const words = v.pipe(v.array(line(4096)), v.maxLength(64))
const names = v.pipe(v.array(v.pipe(line(256), v.minLength(1))), v.maxLength(64))

/** Requirements of an agent. For known agents the catalog states the same members. */
const agentNeeds = {
  /** Another provider, whose requirements apply where this entry has none. */
  like: v.optional(line(64)),
  /** Alternative program names, and registry packages that contain the program. */
  programs: v.optional(names),
  packages: v.optional(names),
  install_command: v.optional(line(1024)),
  /** The agent's own files and folders below HOME, including its login; writable in a sandbox. */
  own_files: v.optional(v.pipe(v.array(belowHome), v.maxLength(64))),
  /** Variables that move this folder. */
  own_files_env: v.optional(names),
  /** Files that the agent executes at its next start, below HOME or in a workspace. */
  code_files: v.optional(v.pipe(v.array(belowHome), v.maxLength(64))),
  /** Environment of its processes; no secrets. */
  env: v.optional(v.pipe(variables, v.maxEntries(64))),
  /** Variables that make it ask for approval where it would not by default. */
  asking_env: v.optional(v.pipe(variables, v.maxEntries(64))),
  /** Arguments and variables that disable the agent's own sandbox, for an asking session in a sandbox of svc. */
  sandboxed_args: v.optional(words),
  /** Additional instructions for the agent in such a session. */
  sandboxed_note: v.optional(line(2048)),
  /** Variables with its API key, for a hint when one is withheld. */
  key_variables: v.optional(names),
  /** Mode ids of the agent that ask for approval, if they differ from the usual ones. */
  asking_modes: v.optional(names),
  never_asks: v.optional(v.boolean()),
  /** Client capabilities that are not offered to the agent, because it fails with them. */
  withholds: v.optional(v.pipe(v.array(v.picklist(['fs', 'terminal', 'elicitation'])), v.maxLength(3))),
  /** Usable MCP transports, if fewer than the agent claims; empty: none. */
  mcp_transports: v.optional(v.pipe(v.array(v.picklist(['stdio', 'http'])), v.maxLength(2))),
}

/** A provider entry of the configuration; it never contains values of secrets. */
export const ProviderSettings = v.strictObject({
  ...agentNeeds,
  auth_login_command: v.optional(line(1024)),
  auth_mode: v.optional(v.picklist(['native_cli', 'bound_secret', 'none'])),
  auth_status_command: v.optional(line(1024)),
  base_url: v.optional(line(2048)),
  command: v.optional(line(4096)),
  credential_slots: v.optional(
    v.pipe(
      v.array(
        v.strictObject({
          name: v.pipe(line(128), v.minLength(1)),
          kind: v.optional(line(64)),
          required: v.boolean(),
          secret_ref: line(512),
          target_env: line(256),
        }),
      ),
      v.maxLength(64),
    ),
  ),
  display_name: v.optional(line(200)),
  /** Variables of the daemon that are passed to its processes although they look like secrets. */
  env_allow: v.optional(v.pipe(v.array(line(256)), v.maxLength(64))),
  env_policy: v.optional(v.picklist(['filtered', 'isolated'])),
  harness: v.optional(v.picklist(['acp', 'pi_acp'])),
  home_policy: v.optional(v.picklist(['operator', 'isolated'])),
  models: v.nullish(
    v.strictObject({
      curated: v.optional(v.pipe(v.array(CuratedModel), v.maxLength(1000))),
      default: v.optional(line(256)),
      discovery: v.nullish(
        v.strictObject({
          command: v.optional(line(4096)),
          enabled: v.nullish(v.boolean()),
          endpoint: v.optional(line(2048)),
          timeout: v.optional(line(64)),
        }),
      ),
      reasoning: v.nullish(v.strictObject({ apply: line(64) })),
    }),
  ),
  runtime_provider: v.optional(line(128)),
  transport: v.optional(line(64)),
})
export type ProviderSettings = v.InferOutput<typeof ProviderSettings>

/** PUT /api/settings/providers/{name}. `secrets` go into the vault; `model_curation` belongs to the model catalog. */
export const PutProviderBody = v.strictObject({
  settings: ProviderSettings,
  model_curation: v.nullish(
    v.strictObject({
      default_effort: v.nullish(ReasoningEffort),
      deprecated: v.nullish(v.boolean()),
      featured: v.nullish(v.boolean()),
      hidden: v.nullish(v.boolean()),
      model_id: v.string(),
    }),
  ),
  secrets: v.optional(
    v.pipe(
      v.array(
        v.strictObject({
          kind: v.optional(line(64)),
          name: v.optional(line(128)),
          secret_ref: line(512),
          value: v.string(),
        }),
      ),
      v.maxLength(64),
    ),
  ),
})
export type PutProviderBody = v.InferOutput<typeof PutProviderBody>

/** A provider: its entry or built-in definition, and whether it can run here. */
export const ProviderEntry = v.object({
  name: v.string(),
  auth_status: v.nullish(
    v.object({
      code: v.optional(v.string()),
      env_policy: v.string(),
      home_policy: v.string(),
      login_command: v.optional(v.string()),
      login_env: v.optional(v.array(v.string())),
      message: v.optional(v.string()),
      mode: v.string(),
      native_cli: v.nullish(
        v.object({
          command: v.optional(v.string()),
          error: v.optional(v.string()),
          path: v.optional(v.string()),
          present: v.boolean(),
          source: v.optional(v.string()),
        }),
      ),
      state: v.string(),
      status_command: v.optional(v.string()),
    }),
  ),
  command_available: v.boolean(),
  credentials: v.optional(
    v.array(
      v.object({
        kind: v.optional(v.string()),
        name: v.string(),
        present: v.boolean(),
        required: v.boolean(),
        secret_ref: v.string(),
        source: v.optional(v.string()),
        target_env: v.string(),
      }),
    ),
  ),
  default: v.boolean(),
  fallback: v.nullish(v.object({ settings: ProviderSettings, source: SourceMetadata.entries.effective_source })),
  settings: ProviderSettings,
  source_metadata: SourceMetadata,
})
export type ProviderEntry = v.InferOutput<typeof ProviderEntry>

/** Confinement of an agent's processes. */
export const SandboxProfile = v.strictObject({
  backend: v.pipe(line(64), v.minLength(1)),
  daytona: v.nullish(
    v.strictObject({
      api_url: v.optional(line(2048)),
      auto_archive: v.optional(line(64)),
      auto_stop: v.optional(line(64)),
      class: v.optional(line(128)),
      image: v.optional(line(512)),
      snapshot: v.optional(line(512)),
      target: v.optional(line(128)),
    }),
  ),
  env: v.optional(variables),
  network: v.nullish(
    v.strictObject({
      allow_list: v.optional(v.pipe(v.array(line(512)), v.maxLength(1000))),
      allow_outbound: v.optional(v.boolean()),
      allow_public_ingress: v.optional(v.boolean()),
      deny_list: v.optional(v.pipe(v.array(line(512)), v.maxLength(1000))),
      required: v.optional(v.boolean()),
    }),
  ),
  persistence: v.optional(line(64)),
  runtime_root: v.optional(line(4096)),
  secret_env: v.optional(mapOf(v.pipe(v.string(), v.maxLength(256)), line(512))),
  sync_mode: v.optional(line(64)),
})
export type SandboxProfile = v.InferOutput<typeof SandboxProfile>

/** PUT /api/settings/sandboxes/{name}. */
export const PutSandboxBody = v.strictObject({ profile: SandboxProfile })
export type PutSandboxBody = v.InferOutput<typeof PutSandboxBody>

/** A sandbox profile and the number of workspaces that use it. */
export const SandboxEntry = v.object({
  name: v.string(),
  profile: SandboxProfile,
  source_metadata: SourceMetadata,
  workspace_usage_count: Integer,
})
export type SandboxEntry = v.InferOutput<typeof SandboxEntry>

/** OAuth settings of an MCP server over HTTP. */
const McpLogin = v.strictObject({
  type: v.optional(line(64)),
  registration: v.optional(v.picklist(['auto', 'pre_registered'])),
  authorization_url: v.optional(line(2048)),
  client_id: v.optional(line(1024)),
  client_secret_ref: v.optional(line(512)),
  issuer_url: v.optional(line(2048)),
  metadata_url: v.optional(line(2048)),
  revocation_url: v.optional(line(2048)),
  scopes: v.optional(v.pipe(v.array(line(256)), v.maxLength(256))),
  token_url: v.optional(line(2048)),
})
const references = mapOf(v.pipe(v.string(), v.maxLength(256)), line(512))

/** Sandbox profile of a program; `none`: no sandbox of its own. */
export const SandboxName = v.optional(
  v.pipe(v.string(), v.regex(/^[a-z0-9][a-z0-9_-]{0,63}$/, 'the name of a sandbox profile, or `none`')),
)

const McpTime = v.pipe(
  DurationText,
  v.check(text => {
    const ms = durationMs(text) ?? 0
    return ms >= 1000 && ms <= 3_600_000
  }, 'a duration from 1s to 1h'),
)

/** Whether a session requires the server, and the server's time limits. */
export const McpServerPolicy = {
  required: v.optional(
    v.pipe(v.boolean(), v.description('refuse a session when the server cannot start; default: false')),
  ),
  start_timeout: v.optional(
    v.pipe(McpTime, v.description('how long the server may take to start and list its tools; default: 60s')),
  ),
  call_timeout: v.optional(v.pipe(McpTime, v.description('how long one call of a tool may take; default: 120s'))),
}

/** An MCP server in `mcp.json`, with either `command` or `url`. */
export const McpSidecarServer = v.strictObject({
  command: v.optional(line(4096)),
  args: v.optional(v.array(line(32_768))),
  env: v.optional(variables),
  secret_env: v.optional(references),
  transport: v.optional(line(64)),
  url: v.optional(line(2048)),
  headers: v.optional(variables),
  secret_headers: v.optional(references),
  auth: v.nullish(McpLogin),
  sandbox: SandboxName,
  ...McpServerPolicy,
})
export type McpSidecarServer = v.InferOutput<typeof McpSidecarServer>
