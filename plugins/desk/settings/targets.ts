import { mkdir, realpath } from 'node:fs/promises'
import path from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import * as v from 'valibot'
import { command } from '../../../kernel/kit/commands/command-line.js'
import { readRegularFile } from '../../../kernel/kit/read-file.js'
import { Serial, SerialBy } from '../../../kernel/kit/serial.js'
import { shown } from '../../../kernel/kit/text.js'
import { type Actor, Fault } from '../../../kernel/plugin.js'
import { type Agent, AgentInput, PutAgentBody } from '../../../schemas/agents.js'
import { McpSidecarServer } from '../../../schemas/settings/entries.js'
import type { ApplyOutcome, PatchKeysBody, SettingsWriteTarget } from '../../../schemas/settings.js'
import type { AgentsApi } from '../../agents/agents/api.js'
import { editJson, readJson } from '../../platform/configuration/api.js'
import type { TextFile } from '../../platform/files/api.js'
import { isInside, ownFolder, type Workspace, writeWhole } from '../workspaces/api.js'
import { AGENT_FIELDS, written } from './agent-fields.js'
import { SettingsErrors } from './errors.js'
import { checkedBody } from './keys.js'
import { strictest } from './lifecycle.js'
import type { K } from './needs.js'
import type { About, SettingsWriter, Write } from './writer.js'

const MOST_BYTES = 1024 * 1024

type Change = PatchKeysBody['changes'][number]

interface Asked {
  readonly changes: readonly Change[]
  readonly actor: Actor
  readonly target: SettingsWriteTarget
  readonly workspace: Workspace | undefined
  readonly agentName: string | undefined
}

/** The files that settings are written to in addition to the home's `config.json`, and the overlays of workspaces. */
export class Targets {
  /** Serializes requests of one workspace, so that its overlay is not loaded twice. */
  readonly #loading = new SerialBy()
  /** Loaded overlays by workspace, with the digest of their files. */
  readonly #overlays = new Map<string, { readonly digest: string; readonly release: () => Promise<void> }>()

  readonly #sidecars = new Serial()

  constructor(
    private readonly kernel: K,
    private readonly writer: SettingsWriter,
  ) {}

  workspace(reference: string | undefined): Promise<Workspace | undefined> {
    return reference ? this.kernel.needs.workspaces.find(reference) : Promise.resolve(undefined)
  }

  /** Id of a workspace's overlay; undefined while its files are untrusted, because they have no effect then. */
  overlayOf(workspace: Workspace): Promise<string | undefined> {
    return this.#loading.run(workspace.id, () => this.#overlayOf(workspace))
  }

  async #overlayOf(workspace: Workspace): Promise<string | undefined> {
    const { id } = workspace
    // If the folder is the home of the daemon, its files apply globally.
    if (ownFolder(workspace.rootDir, this.kernel.home.root) === undefined) return undefined
    const trust = this.kernel.needs.trust.current
    const { state, digest } = (await trust?.of(workspace).catch(() => undefined)) ?? { state: 'untrusted', digest: '' }
    const isAllowed = state === 'trusted' || state === 'empty'
    const loaded = this.#overlays.get(id)
    if (loaded && (!isAllowed || loaded.digest !== digest)) {
      this.#overlays.delete(id)
      await loaded.release()
    }
    if (!isAllowed) return undefined
    if (!this.#overlays.has(id)) {
      const file = fileOf(workspace, 'config.json', () => this.kernel.ids.hex(6))
      const release = await this.kernel.needs.configuration.overlay(id, file, `${workspace.name}/.svc/config.json`)
      this.#overlays.set(id, { digest, release })
    }
    return id
  }

  /** @throws Fault `workspace_untrusted`, and those of the configuration */
  async writeWorkspace(
    workspace: Workspace,
    changes: Write['changes'],
    actor: Actor,
    about: About,
    requestedChanges?: Write['requestedChanges'],
  ) {
    this.#checkOwn(workspace)
    const trust = this.kernel.needs.trust.current
    const overlay = await this.overlayOf(workspace)
    if (!trust || overlay === undefined)
      throw SettingsErrors.workspace_untrusted(
        `the files of workspace ${workspace.name} are not trusted, so its settings have no effect`,
        { next: command('workspace trust', workspace.id) },
      )
    const outcome = await trust.keeping(workspace, () =>
      this.writer.write({ changes, requestedChanges, actor, target: 'workspace-config', overlay, about }),
    )
    // The overlay already has the written values, so the new digest requires no reload.
    const { digest } = await trust.of(workspace)
    const loaded = this.#overlays.get(workspace.id)
    if (loaded) this.#overlays.set(workspace.id, { ...loaded, digest })
    return outcome
  }

  /** @throws Fault `settings_target_invalid` */
  #checkOwn({ name, rootDir }: Workspace): void {
    if (ownFolder(rootDir, this.kernel.home.root) !== undefined) return
    throw SettingsErrors.settings_target_invalid(
      `the folder .svc of workspace ${name} is the home of the daemon; change the global settings instead`,
    )
  }

  async writeSidecar({ changes, actor, target, workspace }: Asked): Promise<ApplyOutcome> {
    if (workspace) this.#checkOwn(workspace)
    const servers = changes.map(({ key, name, value }) => {
      const [group, rest = name, ...more] = [...key.split('.')]
      if (group !== 'mcp_servers' || rest === undefined || more.length > 0)
        throw SettingsErrors.settings_target_invalid(
          `${shown(key)} does not belong in mcp.json; only mcp_servers.<name> does`,
        )
      if (value !== undefined && !isServer(value))
        throw SettingsErrors.settings_target_invalid(`${key}: an object with either command or url is expected`)
      return { name: rest, value }
    })
    const file = workspace
      ? fileOf(workspace, 'mcp.json', () => this.kernel.ids.hex(6))
      : this.kernel.needs.files('mcp.json')
    const about = { scope: workspace ? 'workspace' : 'global', section: 'mcp-servers' } as const
    const where = workspace ? `${workspace.name}/.svc/mcp.json` : 'mcp.json'
    const known = serversIn((await file.read()) ?? '', where)
    const lifecycles = servers.map(({ name, value }) =>
      value === undefined ? 'live-remove-if-unused' : Object.hasOwn(known, name) ? 'session-rebind' : 'live-add',
    )
    const write = {
      actor,
      target,
      keys: servers.map(({ name }) => `mcp_servers.${name}`),
      lifecycle: strictest(lifecycles),
      about: { ...about, ...(workspace && { workspace_id: workspace.id }) },
    }
    const work = async () => {
      const before = (await file.read()) ?? ''
      const edits = servers.map(({ name, value }) => ({ keys: ['mcpServers', name], value }))
      const after = editJson(before, where, edits)
      if (after === before) return false
      await file.write(after)
      return true
    }
    const trust = this.kernel.needs.trust.current
    // The workspace's trust is locked first, in the same order as for every write of its files.
    const written = () => this.writer.aside(write, () => this.#sidecars.run(work))
    return workspace && trust ? trust.keeping(workspace, written) : written()
  }

  /** An agent as it is shown. @throws Fault `settings_target_invalid` with the reason why it cannot be read */
  async agent(name: string, workspace: Workspace | undefined): Promise<Agent> {
    return this.#agents().shown(name, workspace).catch(refused)
  }

  async writeAgent({ changes, actor, target, workspace, agentName }: Asked): Promise<ApplyOutcome> {
    if (!agentName) throw SettingsErrors.settings_target_invalid('agent_name is required for the file of an agent')
    const fields = changes.map(({ key, value }) => {
      const field = AGENT_FIELDS[key]
      if (!field)
        throw SettingsErrors.settings_target_invalid(
          `${shown(key)} does not belong in AGENT.md; use ${Object.keys(AGENT_FIELDS).join(', ')}`,
        )
      return [field, field === 'skills' ? { disabled: value ?? [] } : value] as const
    })
    const agent = await this.agent(agentName, workspace)
    const origin = target === 'workspace-agent-file' ? 'workspace' : 'global'
    if (agent.origin !== origin)
      throw SettingsErrors.settings_target_invalid(`agent ${agentName} is defined ${agent.origin}ly, not ${origin}ly`)
    const input = Object.fromEntries(
      Object.entries({ ...written(agent), ...Object.fromEntries(fields) }).filter(
        ([name, value]) => name in AgentInput.entries && value !== undefined,
      ),
    )
    const isSame = fields.every(([name, value]) => isDeepStrictEqual(agent[name], value))
    const write = {
      actor,
      target,
      keys: changes.map(({ key }) => key),
      lifecycle: 'session-rebind' as const,
      about: { scope: 'agent', agent_name: agentName, ...(workspace && { workspace_id: workspace.id }) } as const,
    }
    return this.writer.aside(write, async () => {
      if (isSame) return false
      const body = {
        agent: input,
        expected_digest: agent.definition_digest,
        ...(workspace && { workspace: workspace.id }),
      }
      try {
        await this.#agents().update(agentName, checkedBody(PutAgentBody, body))
      } catch (error) {
        refused(error)
      }
      return true
    })
  }

  #agents(): AgentsApi {
    const agents = this.kernel.needs.agents.current
    if (!agents) throw SettingsErrors.settings_target_invalid('the plugin agents does not run')
    return agents
  }
}

const isServer = (value: unknown) =>
  v.is(McpSidecarServer, value) && (value.command === undefined) !== (value.url === undefined)

/** Servers in the text of an `mcp.json`, by name. @throws Fault `config_file_invalid` */
const serversIn = (text: string, where: string) => Object(readJson(text, where).mcpServers) as object

const refused = (error: unknown): never => {
  if (!(error instanceof Fault)) throw error
  throw SettingsErrors.settings_target_invalid(error.message, { ...(error.next !== undefined && { next: error.next }) })
}

/** A file in `.svc/` of a workspace; a link that leads out of the workspace is not followed for writing. */
function fileOf({ rootDir }: Workspace, name: string, unique: () => string): TextFile {
  const file = path.join(rootDir, '.svc', name)
  return {
    read: async () => (await readRegularFile(file, { maxBytes: MOST_BYTES, links: 'refuse' }))?.toString(),
    async write(text) {
      await mkdir(path.dirname(file), { recursive: true })
      const [folder, root] = await Promise.all([realpath(path.dirname(file)), realpath(rootDir)])
      if (!isInside(folder, root)) throw SettingsErrors.settings_target_invalid(`${folder} lies outside of ${root}`)
      await writeWhole(path.join(folder, name), text, { how: 'replace', unique: unique() })
    },
  }
}
