import { type Actor, Fault, type HooksOf, iso, KernelErrors } from '../../../kernel/plugin.js'
import type {
  AgentContextReply,
  AgentMeReply,
  CoordinatorConfig,
  SpawnBody,
  ValidateOwnSoulBody,
} from '../../../schemas/sessions/self-service.js'
import { AGENT_SESSION } from '../../access/identity/api.js'
import type { Workspace } from '../../desk/workspaces/api.js'
import { SessionErrors, type SessionInfo } from '../../work/sessions/api.js'
import { Company, HeldWork, points, SpawnErrors } from './api.js'
import type { K } from './needs.js'
import { MAX_DEPTH, SessionSpawner } from './spawner.js'

/** Maximum items per section of the context. */
const SECTION_LIMIT = 20
const empty = { limit: SECTION_LIMIT, returned: 0, truncated: false }

type Headers = Readonly<Record<string, string | undefined>>

/** Answers an agent's requests about its own session. */
export class SelfService {
  readonly points: HooksOf<typeof points>
  readonly spawner: SessionSpawner

  constructor(private readonly kernel: K) {
    this.points = kernel.hooks.of(points)
    this.spawner = new SessionSpawner(kernel, this.points)
  }

  start(): void {
    this.spawner.start()
  }

  /**
   * The calling session: that of the socket or token, or the one an operator speaks for by headers, which `identity`
   * has validated. Throws `identity_required` (401).
   */
  caller(actor: Actor, headers: Headers): SessionInfo {
    const id = actor.origin === AGENT_SESSION ? actor.id : headers['x-service-session-id']
    if (id === undefined) {
      throw KernelErrors.identity_required('only the agent of a session can call this; the caller is the operator', {
        next: 'run it inside a session, where SVC_SOCKET is set',
      })
    }
    const session = this.kernel.needs.sessions.get(id)
    if (!session) throw SessionErrors.session_not_found(`no session ${id}`)
    return session
  }

  async me(caller: SessionInfo): Promise<AgentMeReply> {
    const workspace = this.#workspace(caller)
    return {
      me: {
        active_task_leases: [...(this.#work?.leases(caller) ?? [])],
        capabilities: [],
        channels: [...(this.#company?.channels(caller) ?? [])],
        coordinator: this.coordinator(workspace),
        ...this.#about(caller, workspace),
      },
    }
  }

  async context(caller: SessionInfo): Promise<AgentContextReply> {
    const workspace = this.#workspace(caller)
    const soul = await this.kernel.needs.sidecars.soul(caller.agentName, workspace)
    const { active, enabled, present, valid, validation_status, digest, source_path, truncated, frontmatter, limits } =
      soul
    return {
      context: {
        ...this.#about(caller, workspace),
        capabilities: { capabilities: [], section: empty },
        ...this.#companyOf(caller),
        provenance: { generated_at: iso(this.kernel.clock.now()), source: 'daemon' },
        task: this.#work?.situation(caller) ?? { available: false },
        soul: {
          active,
          enabled,
          present,
          valid,
          validation_status,
          principles: frontmatter.principles ?? [],
          tone: frontmatter.tone ?? [],
          config_digest: soul.config_provenance.digest,
          max_body_bytes: limits.max_body_bytes,
          max_bytes: limits.max_bytes,
          ...(soul.snapshot_id !== undefined && { snapshot_id: soul.snapshot_id }),
          ...(digest !== undefined && { digest }),
          ...(source_path !== undefined && { source_path }),
          ...(truncated !== undefined && { truncated }),
          ...(frontmatter.role !== undefined && { role: frontmatter.role }),
        },
      },
    }
  }

  soul(caller: SessionInfo) {
    return this.kernel.needs.sidecars.soul(caller.agentName, this.#workspace(caller))
  }

  /** Throws `spawn_foreign` (403) for the persona of another agent, or in another workspace. */
  validateSoul(caller: SessionInfo, { agent_name: agent, body, workspace_id: workspace }: ValidateOwnSoulBody) {
    if (agent !== undefined && agent !== caller.agentName) throw SpawnErrors.spawn_foreign(`${agent} is another agent`)
    const own = this.own(caller, workspace)
    if (body === undefined) return this.kernel.needs.sidecars.soul(caller.agentName, own)
    return this.kernel.needs.sidecars.validateSoul(caller.agentName, body, own)
  }

  spawn(caller: SessionInfo, body: SpawnBody) {
    return this.spawner.spawn(caller, body)
  }

  /** The caller's workspace, which a request may also name. Throws `spawn_foreign` (403) for another one. */
  own(caller: SessionInfo, reference?: string): Workspace {
    const workspace = this.#workspace(caller)
    if (reference === undefined || [workspace.id, workspace.name, workspace.rootDir].includes(reference))
      return workspace
    throw SpawnErrors.spawn_foreign(`${reference} is not the workspace of session ${caller.id}`)
  }

  /** The coordinator's configuration for a workspace. */
  coordinator(workspace: Workspace): CoordinatorConfig {
    const read = (name: string): { readonly value: unknown; readonly layer: string } => {
      try {
        return this.kernel.needs.configuration.explain(`roles.coordinator.${name}`)
      } catch (error) {
        // Without the tasks plugin, nothing starts coordinators.
        if (error instanceof Fault && error.code === 'setting_unknown') return { value: undefined, layer: 'default' }
        throw error
      }
    }
    const names = ['enabled', 'agent', 'provider', 'model', 'max_active_sessions_per_workspace', 'max_children', 'ttl']
    const all = Object.fromEntries(names.map(name => [name, read(name)]))
    const layers = Object.values(all).map(({ layer }) => layer)
    const value = (name: string) => all[name]?.value
    const text = (name: string) => (value(name) ? String(value(name)) : undefined)
    const [provider, model] = [text('provider'), text('model')]
    return {
      agent_name: text('agent') ?? 'coordinator',
      default_ttl_seconds: Math.round(msOf(value('ttl')) / 1000),
      enabled: value('enabled') === true,
      max_active_sessions_per_workspace: Number(value('max_active_sessions_per_workspace') ?? 0),
      max_children: Number(value('max_children') ?? 0),
      ...(provider !== undefined && { provider }),
      ...(model !== undefined && { model }),
      source: layers.every(layer => layer === 'default') ? 'default' : 'global',
      workspace_id: workspace.id,
    }
  }

  /** The plugin that provides work for sessions, if any. */
  get #work() {
    return this.kernel.collect(HeldWork)[0]?.entry
  }

  /** The plugin for conversations between sessions, if any. */
  get #company() {
    return this.kernel.collect(Company)[0]?.entry
  }

  #companyOf(caller: SessionInfo) {
    const [channel] = this.#company?.channels(caller) ?? []
    const inbox = this.#company?.inbox(caller, SECTION_LIMIT) ?? { items: [], unread_count: 0 }
    const { peers, isTruncated } = this.#company?.peers(caller, SECTION_LIMIT) ?? { peers: [], isTruncated: false }
    const section = (returned: number, truncated: boolean) => ({ limit: SECTION_LIMIT, returned, truncated })
    return {
      coordination_channel: channel ? { available: true, channel } : { available: false },
      inbox_summary: { ...inbox, section: section(inbox.items.length, inbox.unread_count > inbox.items.length) },
      peer_roster: { peers, section: section(peers.length, isTruncated) },
    }
  }

  #workspace({ workspaceId }: SessionInfo): Workspace {
    return this.kernel.needs.workspaces.get(workspaceId) ?? gone(workspaceId)
  }

  #about(caller: SessionInfo, { id, name, rootDir }: Workspace) {
    const { lineage, model, state, type, provider } = caller
    const isChild = lineage !== undefined
    const participation = this.kernel.needs.sessions.shown(caller.id)?.resolved_network_participation
    return {
      limits: {
        context_section_limit: SECTION_LIMIT,
        max_active_task_leases: this.#work?.mostLeases ?? 0,
        max_children: isChild
          ? 0
          : Math.max(0, this.spawner.mostChildren(caller) - this.spawner.living(caller.id).length),
        max_spawn_depth: isChild ? 0 : MAX_DEPTH,
      },
      self: { agent_name: caller.agentName, provider, session_id: caller.id, ...(model !== undefined && { model }) },
      session: {
        id: caller.id,
        type,
        state,
        ...(caller.name && { name: caller.name }),
        ...(lineage && { lineage }),
        ...(participation && { resolved_network_participation: participation }),
        created_at: iso(caller.createdAt),
        updated_at: iso(caller.updatedAt),
      },
      workspace: { id, name, root_dir: rootDir },
    }
  }
}

const gone = (id: string): never => {
  throw SpawnErrors.spawn_parent_stopped(`the workspace ${id} of this session no longer exists`)
}

/** Milliseconds of a duration, which its setting stores as a number. */
const msOf = (value: unknown): number => (typeof value === 'number' ? value : 0)
