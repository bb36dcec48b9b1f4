import { aborted } from '../../../kernel/kit/backoff.js'
import { command } from '../../../kernel/kit/commands/command-line.js'
import { type Actor, type Batch, type Fault, JsonText, messageOf } from '../../../kernel/plugin.js'
import type {
  Agent,
  AgentActivity,
  AgentCatalogQuery,
  AgentCatalogReply,
  ListAgentsReply,
  PutAgentBody,
} from '../../../schemas/agents.js'
import type { DiagnosticItem } from '../../../schemas/kernel/diagnostic.js'
import { Trust } from '../../access/trust/api.js'
import { type Workspace, WorkspaceErrors } from '../../desk/workspaces/api.js'
import type { ProviderUse } from '../providers/api.js'
import {
  type ActivitySource,
  AgentActivities,
  type AgentDefinition,
  type AgentsApi,
  type LaunchPlan,
  points,
} from './api.js'
import { type CatalogPage, catalogPage } from './catalog.js'
import { brokenItems, partlyItems } from './checks.js'
import type { AgentSpec } from './definition/agent-kind.js'
import type { FolderIndex } from './definition/folder-index.js'
import { AGENT_NAME } from './definition/frontmatter.js'
import { PackagedAgents } from './definition/packaged.js'
import { AgentSources, general } from './definition/sources.js'
import type { Broken, Listing } from './definition/view.js'
import { AgentEditing } from './editing.js'
import { invalid, notFound } from './faults.js'
import { planOf } from './launch-plan.js'
import { ModeChange } from './mode-change.js'
import type { K } from './needs.js'
import { type Resolver, resolveProvider, resolverOf } from './runtime.js'
import { DefaultPermissions } from './settings.js'
import { checkTrusted, nobodyTrusted } from './trusted.js'
import { mapInTurns } from './turns.js'
import { useOf } from './uses.js'
import { leftOutOf, WireCache } from './wire.js'

/** Milliseconds for which a list may use an old detection. */
const RESOLVER_MS = 2000
/** Delay in milliseconds, so that reading all definitions does not compete with the start. */
const WARM_MS = 2000
/** Definitions converted per event loop turn. */
const AT_ONCE = 256
/** Problems of files that a list contains. */
const DIAGNOSTICS_SHOWN = 100

const NO_SESSIONS = { active: 0, failed: 0, total: 0, runtime_seconds: 0 }

/** Pages of one listing that are kept as text. */
const MOST_PAGES = 8

/** A page of the catalog, encoded once for all readers. */
interface CatalogTexts extends Pick<AgentCatalogReply, 'page' | 'sessions_available'> {
  readonly agents: JsonText<AgentCatalogReply['agents']>
  readonly facets: JsonText<AgentCatalogReply['facets']>
}

/** A page with everything that it was made from, besides the listing and the query. */
interface Page {
  readonly active: ReadonlySet<string> | undefined
  readonly found: CatalogPage
  readonly resolve: Resolver
  readonly counts: ReadonlyMap<string, AgentActivity> | undefined
  readonly reply: CatalogTexts
}

/** Agent definitions: files, records and built-in ones. */
export class AgentsService implements AgentsApi {
  readonly deleting
  readonly #sources: AgentSources
  readonly editing: AgentEditing
  readonly #wire: WireCache
  readonly #mode: ModeChange
  readonly packaged = new PackagedAgents()
  readonly #pages = new WeakMap<Listing, Map<string, Page>>()
  #resolver: { readonly of: unknown; readonly at: number; readonly resolver: Promise<Resolver> } | undefined

  constructor(private readonly kernel: K) {
    this.deleting = kernel.hooks.of(points).deleting
    this.#sources = new AgentSources(kernel)
    this.#wire = new WireCache(kernel.config.get(DefaultPermissions), kernel.needs.providers)
    this.#mode = new ModeChange(kernel)
    this.editing = new AgentEditing(kernel, this.#sources, this)
  }

  start(): Promise<void> {
    return this.#mode.note()
  }

  /** Reads all definitions once after the start, so that no request has to; within it, thousands of files would be slow. */
  async warm(signal: AbortSignal): Promise<void> {
    await this.kernel.clock.sleep(WARM_MS, signal).catch(() => {})
    for (const index of this.#allFolders()) {
      if (signal.aborted) return
      await index.refresh()
      await index.idle()
    }
    await aborted(signal)
  }

  reconcile(batch: Batch<AgentSpec>): void {
    this.#sources.records.reconcile(batch)
  }

  async list(workspace?: Workspace): Promise<readonly AgentDefinition[]> {
    return (await this.#sources.view(workspace).listing()).agents.map(({ definition }) => definition)
  }

  async shown(name: string, workspace?: Workspace): Promise<Agent> {
    return this.wire(await this.find(name, workspace))
  }

  update(name: string, body: PutAgentBody): Promise<Agent> {
    return this.editing.update(name, body)
  }

  async find(name: string, workspace?: Workspace): Promise<AgentDefinition> {
    return (await this.locate(name, workspace)).definition
  }

  async locate(name: string, workspace?: Workspace) {
    const first = await this.first(name, workspace)
    if (!first) throw notFound(name, workspace)
    const { found, where } = first
    if (found.ok) return { definition: found.definition, where }
    throw invalid(found)
  }

  async plan(name: string, workspace?: Workspace, provider?: string): Promise<LaunchPlan> {
    const definition = await this.find(name, workspace)
    await checkTrusted(definition, workspace, this.#trust())
    const { providers } = this.kernel.needs
    const permissions = this.kernel.config.get(DefaultPermissions)
    const plan = () => planOf(definition, providers, permissions)
    if (provider === undefined || definition.command !== undefined) return plan()
    const { provider: own } = await resolveProvider(definition, providers)
    if (own?.name === provider) return plan()
    const { model: _model, reasoningEffort: _effort, ...rest } = definition
    return { ...(await planOf({ ...rest, provider }, providers, permissions)), definition }
  }

  async mayRunFilesOf(workspace: Workspace): Promise<boolean> {
    return (await this.#trust()?.allows(workspace)) ?? true
  }

  /** Undefined in a kernel without a plugin for trust. */
  #trust() {
    const { trust, host } = this.kernel.needs
    return trust.current ?? (host.plugins().some(({ provides }) => provides === Trust.id) ? nobodyTrusted : undefined)
  }

  /** The workspace of a query; undefined without one. */
  workspace(reference: string | undefined): Promise<Workspace | undefined> {
    return reference ? this.kernel.needs.workspaces.find(reference) : Promise.resolve(undefined)
  }

  async wire(definition: AgentDefinition): Promise<Agent> {
    return this.#wire.agent(definition, await resolveProvider(definition, this.kernel.needs.providers))
  }

  async wireList(workspace?: Workspace): Promise<ListAgentsReply & { agents: Agent[] }> {
    const [{ agents, broken }, resolve] = await Promise.all([
      this.#sources.view(workspace).listing(),
      this.#lateResolver(),
    ])
    const diagnostics = [
      ...broken.map(({ error, path }) => ({ error_kind: error.kind, message: error.message, path })),
      ...agents.flatMap(({ definition }) => leftOutOf(definition)),
    ].slice(0, DIAGNOSTICS_SHOWN)
    return {
      agents: await mapInTurns(agents, AT_ONCE, ({ definition }) => this.#wire.agent(definition, resolve(definition))),
      ...(diagnostics.length > 0 ? { diagnostics } : {}),
    }
  }

  async catalog(query: AgentCatalogQuery, actor: Actor): Promise<CatalogTexts> {
    const workspace = await this.kernel.needs.workspaces.find(query.workspace)
    const [listing, resolve] = await Promise.all([this.#sources.view(workspace).listing(), this.#lateResolver()])
    const active = this.#activity(source => source.active(workspace.id))
    const { id } = workspace
    const key = JSON.stringify([id, actor.kind, actor.id, { ...query, workspace: undefined }])
    const pages = this.#pages.get(listing) ?? new Map<string, Page>()
    this.#pages.set(listing, pages)
    const known = pages.get(key)
    const found =
      known?.active === active && known ? known.found : catalogPage(listing, query, { workspaceId: id, actor, active })
    const counts = this.#activity(source => source.counts(id, found.names))
    if (known?.found === found && known.resolve === resolve && known.counts === counts) return known.reply
    const entries = found.rows.map(({ definition }) => {
      const agent = this.#wire.text(definition, resolve(definition))
      const sessions = counts && JSON.stringify(counts.get(definition.name) ?? NO_SESSIONS)
      return `{"agent":${agent}${sessions === undefined ? '' : `,"sessions":${sessions}`}}`
    })
    const reply = {
      agents: new JsonText<AgentCatalogReply['agents']>(`[${entries.join(',')}]`),
      facets: new JsonText<AgentCatalogReply['facets']>(JSON.stringify(found.facets)),
      page: found.page,
      sessions_available: active !== undefined && counts !== undefined,
    }
    if (pages.size >= MOST_PAGES) pages.clear()
    pages.set(key, { active, found, resolve, counts, reply })
    return reply
  }

  /** The doctor's items: invalid definition files in the home and all workspaces, and a changed default mode. */
  async check(): Promise<DiagnosticItem[]> {
    const broken = new Map<string, { readonly found: Broken; readonly workspaceId: string | undefined }>()
    const partly: { readonly definition: AgentDefinition; readonly workspaceId: string | undefined }[] = []
    for (const index of this.#allFolders()) {
      await index.refresh()
      const { workspaceId } = index.where
      for (const found of index.found()) {
        if (!found.ok) broken.set(found.path, { found, workspaceId })
        else if (found.definition.leftOut) partly.push({ definition: found.definition, workspaceId })
      }
    }
    return [...this.#mode.findings(), ...partlyItems(partly), ...brokenItems([...broken.values()])]
  }

  /** The used providers, for their doctor check. */
  async uses(): Promise<ProviderUse[]> {
    const resolve = await resolverOf(this.kernel.needs.providers)
    const definitions: AgentDefinition[] = [...this.#sources.records.all()]
    for (const index of this.#allFolders()) {
      await index.refresh()
      for (const found of index.found()) if (found.ok) definitions.push(found.definition)
    }
    for (const { definition } of (await this.#sources.view(undefined).listing()).agents) {
      if (['builtin', 'contributed'].includes(definition.source) && definition !== general) definitions.push(definition)
    }
    return (await mapInTurns(definitions, AT_ONCE, definition => useOf(definition, resolve(definition)))).flat()
  }

  /** Checks that a new default agent exists and is valid; 400, because the contract has no other status there. */
  async judgeWorkspace(workspace: Workspace): Promise<Fault | undefined> {
    const before = this.kernel.needs.workspaces.get(workspace.id)?.defaultAgent ?? ''
    if (workspace.defaultAgent === '' || workspace.defaultAgent === before) return undefined
    try {
      await this.find(workspace.defaultAgent, workspace)
      return undefined
    } catch (error) {
      return WorkspaceErrors.workspace_invalid(`default_agent: ${messageOf(error)}`, { next: command('agent list') })
    }
  }

  /** An invalid name can still exist as the name of a folder, and is found among the broken ones. */
  async first(name: string, workspace: Workspace | undefined) {
    const view = this.#sources.view(workspace)
    if (AGENT_NAME.test(name)) return view.first(name)
    const found = name === '' ? undefined : (await view.listing()).broken.find(broken => broken.name === name)
    return found && { found, where: undefined }
  }

  /** Cached resolver for lists: detection of all providers accesses many files. */
  #lateResolver(): Promise<Resolver> {
    const now = this.kernel.clock.monotonic()
    const { providers } = this.kernel.needs
    const of = providers.list()
    // A new list means a new configuration; a newly installed program is found after a delay.
    if (this.#resolver?.of !== of || now - this.#resolver.at > RESOLVER_MS)
      this.#resolver = { of, at: now, resolver: resolverOf(providers) }
    return this.#resolver.resolver
  }

  /** Undefined without a contributor, or if it fails. */
  #activity<T>(read: (source: ActivitySource) => T): T | undefined {
    const [contributed] = this.kernel.collect(AgentActivities)
    try {
      return contributed && read(contributed.entry)
    } catch (error) {
      this.kernel.log.warn(`${contributed?.owner} did not report which agents are active: ${messageOf(error)}`)
      return undefined
    }
  }

  *#allFolders(): Iterable<FolderIndex> {
    yield* this.#sources.folders(undefined)
    yield* this.#sources.contributed(undefined)
    for (const workspace of this.kernel.needs.workspaces.list()) {
      yield* this.#sources.folders(workspace).filter(index => index.where.source === 'workspace')
    }
  }
}
