import type { PluginKernel } from '../../kernel/plugin.js'
import type { Heartbeat, Soul } from '../../schemas/sidecars.js'
import type { AgentDefinition, Agents } from '../agents/api.js'
import type { Workspace, Workspaces } from '../workspaces/api.js'
import { SidecarErrors, type SidecarsApi } from './api.js'
import { SidecarFiles } from './files.js'
import { heartbeatOf } from './heartbeat.js'
import { Places } from './places.js'
import { Revisions } from './revisions.js'
import { type HeartbeatConfig, HeartbeatSetting, SoulSetting } from './settings.js'
import { personaOf, soulOf } from './soul.js'

/** Personas and heartbeat policies: what lies beside the definition of an agent (Behaviour 4.4, 4.5). */
export class SidecarsService implements SidecarsApi {
  readonly policyResolved
  readonly soulChanged
  readonly souls: SidecarFiles<Soul>
  readonly heartbeats: SidecarFiles<Heartbeat>

  constructor(private readonly kernel: PluginKernel<{ agents: typeof Agents; workspaces: typeof Workspaces }>) {
    this.policyResolved = kernel.hooks.notify<[Heartbeat, string, Workspace?]>('heartbeat.policy.resolved')
    this.soulChanged = kernel.hooks.notify<[Soul, string, Workspace?]>('soul.mutation.after')
    const places = new Places(kernel.needs.agents, kernel.records, () => kernel.ids.hex(6))
    const revisions = new Revisions(kernel.db)
    this.souls = new SidecarFiles('soul', kernel, places, revisions, source =>
      soulOf(source, kernel.setting(SoulSetting)),
    )
    this.heartbeats = new SidecarFiles('heartbeat', kernel, places, revisions, source =>
      heartbeatOf(source, kernel.setting(HeartbeatSetting)),
    )
  }

  // The interface for other plugins.

  get heartbeatConfig(): HeartbeatConfig {
    return this.kernel.setting(HeartbeatSetting)
  }

  soul(agent: string, workspace?: Workspace): Promise<Soul> {
    return this.souls.read(agent, workspace)
  }

  heartbeat(agent: string, workspace?: Workspace): Promise<Heartbeat> {
    return this.heartbeats.read(agent, workspace)
  }

  heartbeatRevision(policy: Heartbeat): string | undefined {
    return this.heartbeats.newest(policy)?.id
  }

  // What the surface asks for.

  /** The workspace of a request; undefined without one. */
  workspace(reference: string | undefined): Promise<Workspace | undefined> {
    return reference ? this.kernel.needs.workspaces.find(reference) : Promise.resolve(undefined)
  }

  /** An agent with a persona that is not valid is not started: it would be somebody else (Behaviour 4.4). */
  async refuseStart({ name }: AgentDefinition, workspace?: Workspace) {
    const { diagnostics = [], source_path: path, validation_status: status } = await this.souls.read(name, workspace)
    if (status !== 'invalid' || !this.kernel.setting(SoulSetting).enabled) return undefined
    const wrong = diagnostics.find(({ severity }) => severity === 'error')
    const line = wrong?.line === undefined ? '' : ` (line ${wrong.line})`
    return SidecarErrors.soul_invalid(`the persona of agent ${name} is not valid: ${wrong?.message}${line}`, {
      details: { ...(path && { path }), ...(wrong && { error_kind: wrong.code }) },
      next: `svc agent soul inspect ${name}`,
    })
  }

  /** The prompt of an agent with its persona behind it. */
  async withPersona(prompt: string, { name }: AgentDefinition, workspace?: Workspace): Promise<string | undefined> {
    const { active, body = '', frontmatter } = await this.souls.read(name, workspace)
    if (!active) return undefined
    return `${prompt}\n\n${personaOf(body, frontmatter, this.kernel.setting(SoulSetting)).text}`
  }
}
