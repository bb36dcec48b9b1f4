import { type Actor, Fault, messageOf, ok } from '../../kernel/plugin.js'
import type { DiagnosticItem } from '../../schemas/kernel/diagnostic.js'
import type {
  DeleteSidecarBody,
  Heartbeat,
  RefreshSoulBody,
  RollbackHeartbeatBody,
  RollbackSoulBody,
  SidecarHistoryQuery,
  Soul,
  ValidateHeartbeatBody,
  ValidateSoulBody,
  WriteSidecarBody,
} from '../../schemas/sidecars.js'
import type { SessionInfo } from '../sessions/api.js'
import type { Workspace } from '../workspaces/api.js'
import { SidecarErrors, type SidecarsApi } from './api.js'
import { brokenSidecars } from './checks.js'
import { type Asked, type Changed, SidecarFiles } from './files.js'
import { Follower } from './follower.js'
import { heartbeatOf } from './heartbeat.js'
import { Personas } from './persona.js'
import { Places, type Which } from './places.js'
import { heartbeatRevision, Revisions, soulRevision } from './revisions.js'
import { type HeartbeatConfig, HeartbeatSetting, type SidecarsKernel, SoulSetting } from './settings.js'
import { soulOf } from './soul.js'

/** Personas and heartbeat policies: the files beside an agent definition. */
export class SidecarsService implements SidecarsApi {
  readonly policyResolved
  readonly configured
  readonly soulChanged
  readonly soulResolved
  readonly souls: SidecarFiles<Soul>
  readonly heartbeats: SidecarFiles<Heartbeat>
  readonly persona: Personas
  readonly #follower: Follower

  constructor(private readonly kernel: SidecarsKernel) {
    this.policyResolved = kernel.hooks.notify<[Heartbeat, string, Workspace?]>('heartbeat.policy.resolved')
    this.soulChanged = kernel.hooks.notify<[Soul, string, Workspace?]>('soul.mutation.after')
    this.soulResolved = kernel.hooks.notify<[Soul, Pick<SessionInfo, 'id' | 'agentName'>]>('soul.snapshot.resolved')
    this.configured = kernel.hooks.notify<[HeartbeatConfig]>('heartbeat.configured')
    kernel.onSetting(HeartbeatSetting, config => void this.configured.call(config))
    const places = new Places(kernel.needs.agents, kernel.records, () => kernel.ids.hex(6))
    const revisions = new Revisions(kernel.db)
    this.souls = new SidecarFiles('soul', kernel, places, revisions, source =>
      soulOf(source, kernel.setting(SoulSetting)),
    )
    this.heartbeats = new SidecarFiles('heartbeat', kernel, places, revisions, source =>
      heartbeatOf(source, kernel.setting(HeartbeatSetting)),
    )
    this.#follower = new Follower(
      kernel,
      (which, agent, workspace) => void this.#changedByHand(which, agent, workspace),
    )
    kernel.scope.defer('watched folders', () => this.#follower.close())
    this.persona = new Personas(kernel, this.souls, this.soulResolved)
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

  follow(policy: Heartbeat, agent: string, workspace?: Workspace): () => void {
    const folder = this.heartbeats.folderOf(policy)
    return folder === undefined ? () => {} : this.#follower.follow(folder, agent, workspace)
  }

  // What the routes ask for. A text that is not valid is answered with what it would be, and 422.

  async readHeartbeat(agent: string, reference: string | undefined) {
    const workspace = await this.#workspace(reference)
    const policy = await this.heartbeats.read(agent, workspace)
    await this.policyResolved.call(policy, agent, workspace)
    return policy.validation_status === 'invalid' ? { status: 422 as const, body: policy } : ok(policy)
  }

  async writeHeartbeat(agent: string, body: WriteSidecarBody, actor: Actor, headers: Headers) {
    const asked = await this.#asked(agent, body, actor, headers)
    return this.#heartbeatChanged(asked, await this.heartbeats.write(asked, body.body, condition(body)))
  }

  async rollbackHeartbeat(agent: string, body: RollbackHeartbeatBody, actor: Actor, headers: Headers) {
    const asked = await this.#asked(agent, body, actor, headers)
    const to = { id: body.revision_id, digest: body.target_digest }
    return this.#heartbeatChanged(asked, await this.heartbeats.rollback(asked, to, condition(body)))
  }

  async deleteHeartbeat(agent: string, body: DeleteSidecarBody, actor: Actor, headers: Headers) {
    const asked = await this.#asked(agent, body, actor, headers)
    const { snapshot: heartbeat, revision } = await this.heartbeats.remove(asked, condition(body))
    await this.policyResolved.call(heartbeat, agent, asked.workspace)
    return { heartbeat, revision: heartbeatRevision(revision) }
  }

  async validateHeartbeat(agent: string, { body, workspace_id }: ValidateHeartbeatBody) {
    const policy = await this.heartbeats.validate(agent, await this.#workspace(workspace_id), body)
    return policy.valid ? ok(policy) : { status: 422 as const, body: policy }
  }

  async heartbeatHistory(agent: string, { workspace_id, ...page }: SidecarHistoryQuery) {
    const { rows, ...more } = await this.heartbeats.history(agent, await this.#workspace(workspace_id), page)
    return { revisions: rows.map(heartbeatRevision), ...more }
  }

  async readSoul(agent: string, reference: string | undefined): Promise<Soul> {
    const soul = await this.souls.read(agent, await this.#workspace(reference))
    const revision = this.souls.newest(soul)
    return { ...soul, ...(revision?.new_digest === soul.digest && { revision_id: revision?.id }) }
  }

  async writeSoul(agent: string, body: WriteSidecarBody, actor: Actor, headers: Headers) {
    const asked = await this.#asked(agent, body, actor, headers)
    return this.#soulChanged(asked, await this.souls.write(asked, body.body, condition(body)))
  }

  async rollbackSoul(agent: string, body: RollbackSoulBody, actor: Actor, headers: Headers) {
    const asked = await this.#asked(agent, body, actor, headers)
    return this.#soulChanged(asked, await this.souls.rollback(asked, { id: body.revision_id }, condition(body)))
  }

  async deleteSoul(agent: string, body: DeleteSidecarBody, actor: Actor, headers: Headers) {
    const asked = await this.#asked(agent, body, actor, headers)
    const { snapshot: soul, revision } = await this.souls.remove(asked, condition(body))
    await this.soulChanged.call(soul, agent, asked.workspace)
    return { soul, revision: soulRevision(revision) }
  }

  async validateSoul(agent: string, { body, workspace_id }: ValidateSoulBody) {
    const workspace = await this.#workspace(workspace_id)
    const soul = await (body === undefined
      ? this.souls.read(agent, workspace)
      : this.souls.validate(agent, workspace, body))
    return soul.validation_status === 'invalid' ? { status: 422 as const, body: soul } : ok(soul)
  }

  async soulHistory(agent: string, { workspace_id, ...page }: SidecarHistoryQuery) {
    const { rows, ...more } = await this.souls.history(agent, await this.#workspace(workspace_id), page)
    return { revisions: rows.map(soulRevision), ...more }
  }

  refresh(at: { workspace_id: string; session_id: string }, body: RefreshSoulBody, actor: Actor) {
    return this.persona.refresh(at, body, actor)
  }

  /** Doctor: sidecars that are not valid, of the agents of the home and of every workspace. */
  async check(): Promise<DiagnosticItem[]> {
    const { agents, workspaces } = this.kernel.needs
    const seen = new Map<string, Heartbeat | Soul>()
    for (const workspace of [undefined, ...workspaces.list()]) {
      for (const { name } of await agents.list(workspace)) {
        for (const one of [await this.souls.read(name, workspace), await this.heartbeats.read(name, workspace)]) {
          if (one.validation_status === 'invalid') seen.set(one.source_path ?? name, one)
        }
      }
    }
    return brokenSidecars([...seen.values()])
  }

  async #changedByHand(which: Which, agent: string, workspace: Workspace | undefined): Promise<void> {
    try {
      if (which === 'soul') await this.soulChanged.call(await this.souls.read(agent, workspace), agent, workspace)
      else await this.policyResolved.call(await this.heartbeats.read(agent, workspace), agent, workspace)
    } catch (error) {
      // It went with its file.
      if (!(error instanceof Fault))
        this.kernel.log.warn(`a file beside agent ${agent} cannot be read: ${messageOf(error)}`)
    }
  }

  async #heartbeatChanged({ agent, workspace }: Asked, { snapshot: heartbeat, revision }: Changed<Heartbeat>) {
    if (!revision) return { status: 422 as const, body: heartbeat }
    await this.policyResolved.call(heartbeat, agent, workspace)
    return ok({ heartbeat, revision: heartbeatRevision(revision) })
  }

  async #soulChanged({ agent, workspace }: Asked, { snapshot: soul, revision }: Changed<Soul>) {
    if (!revision) return { status: 422 as const, body: soul }
    await this.soulChanged.call(soul, agent, workspace)
    return ok({ soul, revision: soulRevision(revision) })
  }

  async #asked(
    agent: string,
    { workspace_id }: { readonly workspace_id?: string | undefined },
    actor: Actor,
    headers: Headers,
  ): Promise<Asked> {
    if (headers['if-match'] !== undefined) throw SidecarErrors.heartbeat_if_match_header_unsupported()
    return { agent, workspace: await this.#workspace(workspace_id), actor }
  }

  /** The workspace of a request; undefined without one. */
  #workspace(reference: string | undefined): Promise<Workspace | undefined> {
    return reference ? this.kernel.needs.workspaces.find(reference) : Promise.resolve(undefined)
  }
}

type Headers = Readonly<Record<string, string | undefined>>

const condition = (body: { readonly expected_digest: string; readonly idempotency_key?: string | undefined }) => ({
  expected: body.expected_digest,
  key: body.idempotency_key,
})
