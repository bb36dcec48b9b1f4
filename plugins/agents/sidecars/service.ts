import { type Actor, Fault, messageOf, ok } from '../../../kernel/plugin.js'
import type {
  Heartbeat,
  HeartbeatChangeReply,
  HeartbeatRevision,
  RefreshSoulBody,
  Soul,
  SoulChangeReply,
  SoulRevision,
} from '../../../schemas/agents/sidecars.js'
import type { DiagnosticItem } from '../../../schemas/kernel/diagnostic.js'
import type { Workspace } from '../../desk/workspaces/api.js'
import { points, type SidecarsApi } from './api.js'
import { brokenSidecars } from './checks.js'
import { SidecarDesk } from './desk.js'
import { SidecarFiles } from './files.js'
import { Follower } from './follower.js'
import { heartbeatOf } from './heartbeat.js'
import { SidecarLocations, type Which } from './locations.js'
import type { K } from './needs.js'
import { Personas } from './persona.js'
import { heartbeatRevision, Revisions, soulRevision } from './revisions.js'
import { type HeartbeatConfig, HeartbeatSetting, SoulSetting } from './settings.js'
import { soulOf } from './soul.js'
import { Survey } from './survey.js'

/** Personas and heartbeat policies: the files beside an agent definition. */
export class SidecarsService implements SidecarsApi {
  readonly policyResolved
  readonly configured
  readonly soulChanged
  readonly soulResolved
  readonly souls: SidecarFiles<Soul>
  readonly heartbeats: SidecarFiles<Heartbeat>
  readonly soulDesk: SidecarDesk<Soul, SoulChangeReply, SoulRevision>
  readonly heartbeatDesk: SidecarDesk<Heartbeat, HeartbeatChangeReply, HeartbeatRevision>
  readonly persona: Personas
  readonly #follower: Follower
  readonly #survey: Survey

  constructor(private readonly kernel: K) {
    const own = kernel.hooks.of(points)
    this.policyResolved = own.policyResolved
    this.soulChanged = own.soulChanged
    this.soulResolved = own.soulResolved
    this.configured = own.configured
    const places = new SidecarLocations(kernel.needs.agents, kernel.records, () => kernel.ids.hex(6))
    const revisions = new Revisions(kernel)
    this.souls = new SidecarFiles('soul', kernel, places, revisions, source =>
      soulOf(source, kernel.config.get(SoulSetting)),
    )
    this.heartbeats = new SidecarFiles('heartbeat', kernel, places, revisions, source =>
      heartbeatOf(source, kernel.config.get(HeartbeatSetting)),
    )
    const find = (reference: string) => kernel.needs.workspaces.find(reference)
    this.soulDesk = new SidecarDesk(this.souls, {
      find,
      revision: soulRevision,
      change: (soul, row) => ({ soul, revision: soulRevision(row) }),
      changed: (...changed) => this.soulChanged.call(...changed),
    })
    this.heartbeatDesk = new SidecarDesk(this.heartbeats, {
      find,
      revision: heartbeatRevision,
      change: (heartbeat, row) => ({ heartbeat, revision: heartbeatRevision(row) }),
      changed: (...changed) => this.policyResolved.call(...changed),
    })
    this.#follower = new Follower(
      kernel,
      (which, agent, workspace) => void this.#changedByHand(which, agent, workspace),
    )
    kernel.scope.defer('watched folders', () => this.#follower.close())
    this.#survey = new Survey(kernel.clock, (which, { definition: { name }, workspace }) =>
      (which === 'soul' ? this.souls : this.heartbeats).read(name, workspace),
    )
    this.persona = new Personas(kernel, this.souls, this.soulResolved)
  }

  // API for other plugins.

  get heartbeatConfig(): HeartbeatConfig {
    return this.kernel.config.get(HeartbeatSetting)
  }

  soul(agent: string, workspace?: Workspace): Promise<Soul> {
    return this.souls.read(agent, workspace)
  }

  validateSoul(agent: string, text: string, workspace?: Workspace): Promise<Soul> {
    return this.souls.validate(agent, workspace, text)
  }

  heartbeat(agent: string, workspace?: Workspace): Promise<Heartbeat> {
    return this.heartbeats.read(agent, workspace)
  }

  heartbeatRevision(policy: Heartbeat): string | undefined {
    return this.heartbeats.newest(policy)?.id
  }

  follow(policy: Heartbeat, agent: string, workspace?: Workspace): () => void {
    const folder = this.heartbeats.folderOf(policy)
    return folder === undefined ? () => {} : this.#follower.follow(folder, agent, workspace)
  }

  // Requests of the routes that the desks do not handle.

  async readHeartbeat(agent: string, reference: string | undefined) {
    const workspace = await this.heartbeatDesk.workspace(reference)
    const policy = await this.heartbeats.read(agent, workspace)
    await this.policyResolved.call(policy, agent, workspace)
    return policy.validation_status === 'invalid' ? { status: 422 as const, body: policy } : ok(policy)
  }

  async readSoul(agent: string, reference: string | undefined): Promise<Soul> {
    const soul = await this.souls.read(agent, await this.soulDesk.workspace(reference))
    const revision = this.souls.newest(soul)
    return { ...soul, ...(revision?.new_digest === soul.digest && { revision_id: revision?.id }) }
  }

  refresh(at: { workspace_id: string; session_id: string }, body: RefreshSoulBody, actor: Actor) {
    return this.persona.refresh(at, body, actor)
  }

  /** The doctor's items: invalid sidecars of agents in the home and all workspaces. */
  async check(signal: AbortSignal): Promise<DiagnosticItem[]> {
    const { agents, workspaces } = this.kernel.needs
    const all = []
    for (const workspace of [undefined, ...workspaces.list()])
      for (const definition of await agents.list(workspace)) all.push({ definition, workspace })
    const settings = [this.kernel.config.get(SoulSetting), this.kernel.config.get(HeartbeatSetting)]
    return brokenSidecars(await this.#survey.invalid(all, settings, signal))
  }

  async #changedByHand(which: Which, agent: string, workspace: Workspace | undefined): Promise<void> {
    try {
      if (which === 'soul') await this.soulChanged.call(await this.souls.read(agent, workspace), agent, workspace)
      else await this.policyResolved.call(await this.heartbeats.read(agent, workspace), agent, workspace)
    } catch (error) {
      // The file was removed together with its agent.
      if (!(error instanceof Fault))
        this.kernel.log.warn(`a file beside agent ${agent} cannot be read: ${messageOf(error)}`)
    }
  }
}
