import os from 'node:os'
import path from 'node:path'
import { command } from '../../../kernel/kit/commands/command-line.js'
import { Serial } from '../../../kernel/kit/serial.js'
import { shown } from '../../../kernel/kit/text.js'
import { type Actor, iso, JsonText } from '../../../kernel/plugin.js'
import type { DiagnosticItem } from '../../../schemas/kernel/diagnostic.js'
import type { ShadowEntry, Skill, SkillContext, SkillDiagnostic, SkillShadowsReply } from '../../../schemas/skills.js'
import { agentSessionOf } from '../../access/identity/api.js'
import type { Workspace } from '../../desk/workspaces/api.js'
import type { HookDeclarations } from '../../work/hooks/api.js'
import type { McpServerSource } from '../../work/mcp/api.js'
import type { SessionInfo } from '../../work/sessions/api.js'
import { type ManagedSkill, SkillErrors, type SkillsApi, type SkillView } from './api.js'
import { skillHooks } from './brought/hooks.js'
import { skillServers } from './brought/servers.js'
import type { Broken, Candidate } from './candidate.js'
import { capabilitiesOf } from './capabilities.js'
import { judgeFiles } from './judge.js'
import type { K } from './needs.js'
import { Resolutions } from './resolutions.js'
import { diagnosticsOf, type Resolved, whenOf } from './resolve.js'
import { SkillSettings } from './settings.js'
import { Shadows } from './shadows.js'
import { SkillSources } from './sources.js'
import { SkillSwitch } from './switch.js'
import { Briefings, environmentsOf } from './telling/briefing.js'
import { DIAGNOSTICS_SHOWN, findingsOf } from './telling/findings.js'

/** The skills of a view. */
export interface Seen {
  readonly view: SkillView
  readonly skills: readonly Resolved[]
  readonly broken: readonly Broken[]
}

/** Skills: lookup for a viewer, their content, and enabling them. */
export class SkillsService implements SkillsApi {
  readonly #sources: SkillSources
  readonly #shadows: Shadows
  readonly #switch: SkillSwitch
  readonly #serial = new Serial()
  readonly #resolutions = new Resolutions()
  /** Texts of lists: for a person, and for an agent, which does not see all of them. */
  readonly #texts = { person: new ListTexts(), agent: new ListTexts() }
  readonly briefing: Briefings
  /** MCP servers declared by skills. */
  readonly servers: McpServerSource
  readonly hooks: HookDeclarations

  constructor(private readonly kernel: K) {
    this.#sources = new SkillSources(kernel)
    this.#shadows = new Shadows(kernel)
    this.#switch = new SkillSwitch(kernel)
    const capabilities = (view: SkillView, trusted: boolean) => this.#capabilities(view, trusted)
    const bringing = { kernel, sources: this.#sources, switches: this.#switch, capabilities }
    this.servers = skillServers(bringing)
    this.hooks = skillHooks(bringing)
    this.briefing = new Briefings(kernel, view => this.see(view))
  }

  get folder(): string {
    return this.#sources.home
  }

  changed(): void {
    this.#sources.expire()
    this.hooksChanged()
  }

  /** Refreshes the hooks after a change of skills. */
  hooksChanged(): void {
    void this.kernel.needs.hooks.current?.refresh()
  }

  async managed(): Promise<readonly ManagedSkill[]> {
    const { candidates } = await this.#sources.of({})
    return candidates.flatMap(({ name, dir, meta, failure }) =>
      meta ? [{ name, dir, meta, ...(failure?.code === 'hash_mismatch' && { failure: failure.message }) }] : [],
    )
  }

  judge = judgeFiles

  /** All resolved skills of a view. @throws Fault `agent_not_found`, `agent_invalid` */
  async see(view: SkillView): Promise<Seen> {
    const agents = this.kernel.needs.agents.current
    const { workspace, agent } = view
    const definition = agent === undefined ? undefined : await agents?.find(agent, workspace)
    const [{ candidates, broken }, disabled, trusted] = await Promise.all([
      this.#sources.of(view),
      this.#switch.disabled(workspace),
      (workspace && agents?.mayRunFilesOf(workspace)) ?? true,
    ])
    const tools = await this.#tools(view, candidates)
    const skills = this.#resolutions.of(view, candidates, {
      platforms: [os.platform()],
      environments: view.environments,
      tools,
      capabilities: await this.#capabilities(view, trusted),
      disabled: new Set([...disabled, ...(definition?.disabledSkills ?? [])]),
      trusted,
    })
    await this.#shadows.notice(skills)
    return { view, skills, broken }
  }

  /** Capabilities of the agent; undefined without an agent, or if its files are in an untrusted workspace. */
  async #capabilities({ workspace, agent }: SkillView, trusted: boolean): Promise<ReadonlySet<string> | undefined> {
    if (agent === undefined) return undefined
    const where = await this.#sources.agentFolder(agent, workspace)
    if (!where || (where.workspaceId !== undefined && !trusted)) return undefined
    return capabilitiesOf(path.join(where.folder, agent))
  }

  async list(context: SkillContext, actor: Actor) {
    const { skills, broken } = await this.see(await this.#viewOf(context, actor))
    const isAgent = agentSessionOf(actor) !== undefined
    return {
      skills: this.#text(skills, isAgent),
      ...(broken.length > 0 && { diagnostics: broken.slice(0, DIAGNOSTICS_SHOWN).map(brokenToWire) }),
    }
  }

  /** @throws Fault `skill_not_found` */
  async show(name: string, context: SkillContext, actor: Actor): Promise<Skill> {
    return this.#toWire(await this.#find(name, context, actor))
  }

  /** The instructions without the frontmatter. @throws Fault `skill_not_found`, `skill_blocked` */
  async content(name: string, context: SkillContext, actor: Actor): Promise<string> {
    const { winner, enabled, untrusted } = await this.#find(name, context, actor)
    const isAgent = agentSessionOf(actor) !== undefined
    if (winner.failure)
      throw SkillErrors.skill_blocked(`skill ${shown(name)} is not available: ${winner.failure.message}`, {
        next: command('skill show', name),
        details: { reason: winner.failure.code },
      })
    if (isAgent && (!enabled || untrusted))
      throw SkillErrors.skill_not_found(`the skill ${shown(name)} is ${enabled ? 'not trusted' : 'disabled'} here`)
    return winner.spec.body
  }

  /** @throws Fault `skill_not_found` */
  async shadows(name: string, context: SkillContext, actor: Actor): Promise<SkillShadowsReply> {
    const { winner, shadowed } = await this.#find(name, context, actor)
    const first = this.#entry(winner, winner)
    return { name, winner: first, shadows: [first, ...shadowed.map(one => this.#entry(one, winner))] }
  }

  /** @throws Fault `skill_not_found`, `skill_switch_refused` */
  async setEnabled(name: string, enabled: boolean, context: SkillContext, actor: Actor): Promise<void> {
    await this.#find(name, context, actor)
    const { workspace, agent } = await this.#contextView(context)
    // Serialized, because the list is read and written as a whole.
    await this.#serial.run(() => this.#switch.set(name, enabled, { workspace, agent }, actor))
    await this.kernel.needs.hooks.current?.refresh()
  }

  /** Member of the status. */
  async status(reference: string | undefined) {
    const workspace = reference ? await this.kernel.needs.workspaces.find(reference) : undefined
    const { skills, broken } = await this.see({ workspace })
    const diagnostics = [...broken.map(brokenToWire), ...skills.flatMap(diagnosticsOf).filter(isRemarkable)]
    return {
      runtime_available: this.kernel.config.get(SkillSettings.enabled),
      discovered_count: skills.length,
      disabled_count: skills.filter(({ enabled }) => !enabled).length,
      diagnostics: diagnostics.slice(0, DIAGNOSTICS_SHOWN),
    }
  }

  /** Skills in the detail of a workspace. */
  async ofWorkspace(workspace: Workspace) {
    const { skills } = await this.see({ workspace })
    return skills.map(({ winner: { name, dir, tier } }) => ({ name, dir, source: tier }))
  }

  /** The doctor's items: refused or unreadable skills in the home and all workspaces. */
  check(): Promise<DiagnosticItem[]> {
    return findingsOf(this.kernel.needs.workspaces.list(), view => this.see(view))
  }

  /** The view of a session. */
  sessionView(session: SessionInfo, workspace: Workspace): SkillView {
    return { workspace, agent: session.agentName, session: session.id, environments: environmentsOf(session) }
  }

  async #find(name: string, context: SkillContext, actor: Actor): Promise<Resolved> {
    const { skills } = await this.see(await this.#viewOf(context, actor))
    const found = skills.find(({ winner }) => winner.name === name)
    if (found) return found
    throw SkillErrors.skill_not_found(`there is no skill ${shown(name)} here`)
  }

  /** An agent always sees the view of its own session. */
  async #viewOf(context: SkillContext, actor: Actor): Promise<SkillView> {
    const { sessions, workspaces } = this.kernel.needs
    const session = sessions.current?.get(agentSessionOf(actor) ?? '')
    if (session) return this.sessionView(session, await workspaces.find(session.workspaceId))
    return this.#contextView(context)
  }

  async #contextView({ workspace, for_agent: agent }: SkillContext): Promise<SkillView> {
    const { workspaces } = this.kernel.needs
    return { workspace: workspace ? await workspaces.find(workspace) : undefined, agent: agent || undefined }
  }

  /** Ids of the tools in a view; requested only if a skill requires some. Undefined: unknown. */
  async #tools({ workspace, agent, session }: SkillView, candidates: readonly Candidate[]) {
    const tools = this.kernel.needs.tools.current
    if (!tools || !candidates.some(one => whenOf(one).requires_tools)) return undefined
    const listed = await tools.list({
      ...(workspace && { workspaceId: workspace.id }),
      ...(agent !== undefined && { agentName: agent }),
      ...(session !== undefined && { sessionId: session }),
    })
    return new Set(listed.map(({ descriptor }) => descriptor.id))
  }

  #entry(candidate: Candidate, winner: Candidate): ShadowEntry {
    return {
      detected_at: iso(this.#shadows.since(candidate, winner)),
      path: candidate.path,
      resolved_to_winner: candidate === winner,
      tier: candidate.tier,
    }
  }

  /** The list as JSON, made once for the same skills. */
  #text(skills: readonly Resolved[], isAgent: boolean): JsonText<Skill[]> {
    const { clears } = this.#shadows
    const texts = this.#texts[isAgent ? 'agent' : 'person']
    const known = texts.get(skills)
    if (known?.clears === clears) return known.text
    const listed = skills.filter(({ winner }) => !isAgent || winner.spec.announced !== false)
    const text = new JsonText<Skill[]>(JSON.stringify(listed.map(skill => this.#toWire(skill))))
    texts.set(skills, { clears, text })
    return text
  }

  #toWire(skill: Resolved): Skill {
    const { winner, shadowed, enabled, active, reasons } = skill
    const { spec, meta, extension, bundle } = winner
    return {
      name: winner.name,
      description: spec.description,
      dir: winner.dir,
      source: winner.tier,
      enabled,
      activation: { active, ...(reasons.length > 0 && { reasons: [...reasons] }) },
      ...(spec.version !== undefined && { version: spec.version }),
      ...(spec.metadata && { metadata: spec.metadata }),
      provenance: {
        precedence_tier: winner.tier,
        ...(meta && {
          installed_at: meta.installed_at,
          registry: meta.registry,
          slug: meta.slug,
          ...(meta.version !== undefined && { version: meta.version }),
        }),
        ...(extension !== undefined && { installed_from_extension: extension }),
        ...(bundle !== undefined && { installed_from_bundle: bundle }),
        ...(shadowed.length > 0 && { shadowed_by: shadowed.map(one => this.#entry(one, winner)) }),
      },
      diagnostics: diagnosticsOf(skill),
    }
  }
}

/** Texts by the skills that they list; `clears`: see {@link Shadows}. */
class ListTexts extends WeakMap<readonly Resolved[], { readonly clears: number; readonly text: JsonText<Skill[]> }> {}

const isRemarkable = ({ state, verification_status: status }: SkillDiagnostic) =>
  state !== 'valid' || status !== 'passed'

const brokenToWire = ({ path, tier, message }: Broken): SkillDiagnostic => ({
  name: path.split('/').at(-2) ?? path,
  path,
  source: tier,
  state: 'verification_failed',
  verification_status: 'failed',
  failure: { code: 'skill_invalid', message },
})
