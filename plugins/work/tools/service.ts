import { command } from '../../../kernel/kit/commands/command-line.js'
import { Fault } from '../../../kernel/plugin.js'
import type { Tool, Toolset } from '../../../schemas/tools.js'
import {
  type JudgedTool,
  points,
  type ToolCaller,
  type ToolOutcome,
  type ToolPlace,
  type ToolsApi,
  toolFault,
} from './api.js'
import { Approvals, type Waiting } from './approvals/approvals.js'
import { Asking } from './approvals/asking.js'
import { Decisions } from './approvals/decisions.js'
import { Grants } from './approvals/grants.js'
import { ExtensionBackend } from './backends/extension.js'
import { NativeBackend } from './backends/native.js'
import { type CallOptions, Calls, type Input, inputOf } from './calls.js'
import { digestOf } from './digest.js'
import { ApprovalErrors, noTool, reasonsOf } from './faults.js'
import type { K } from './needs.js'
import { isShown, type Judgement, judge, type PolicyScope, type Rules } from './policy.js'
import { type Catalog, Catalogs, type Entry } from './registry/catalog.js'
import { PatternThread } from './registry/pattern-thread.js'
import type { AskPatterns } from './registry/schema-check.js'
import { Artifacts } from './results/artifacts.js'
import { type ScopeRequest, Scopes } from './scopes.js'
import { ToolSettings } from './settings.js'
import { Toolsets } from './toolsets.js'
import { toolToWire } from './wire.js'

/** A place (workspace, agent, session) with the tools and rules that decide about calls there. */
export interface Scene {
  readonly catalog: Catalog
  readonly toolsets: Toolsets
  readonly scope: PolicyScope
  readonly rules: Rules
}

/** Evaluates the daemon's own patterns directly: they are trusted to be fast. */
const askHere: AskPatterns = async questions =>
  questions.map(([pattern, flags, text]) => new RegExp(pattern, flags).test(text))

const listed = ([entry, decision]: readonly [Entry, Judgement]): JudgedTool => ({ ...entry, decision })

const MAX_LIMIT = 200
const LIMIT = 20

/** Tools of all backends, their rules and their calls. */
export class ToolsService implements ToolsApi {
  readonly native: NativeBackend
  readonly extension: ExtensionBackend
  readonly approvals: Approvals
  readonly grants: Grants
  readonly artifacts: Artifacts
  readonly scopes: Scopes
  readonly calls: Calls
  readonly decisions: Decisions
  readonly asking: Asking
  readonly calling
  readonly called
  readonly #catalogs: Catalogs
  readonly #listed = new WeakMap<Catalog, { readonly rules: string; readonly tools: readonly JudgedTool[] }>()
  readonly #patterns = new PatternThread()
  #toolsets: { readonly catalog: Catalog; readonly configured: object; readonly made: Toolsets } | undefined

  constructor(readonly kernel: K) {
    const { config, clock, ids, hooks, needs } = kernel
    this.native = new NativeBackend(kernel)
    this.extension = new ExtensionBackend(kernel)
    this.#catalogs = new Catalogs(kernel, [this.native, this.extension])
    this.scopes = new Scopes(kernel)
    this.approvals = new Approvals(clock, ids, () => config.get(ToolSettings.approvalTimeout))
    this.grants = new Grants(kernel)
    this.artifacts = new Artifacts(kernel, () => ({
      count: config.get(ToolSettings.artifactCount),
      bytes: config.get(ToolSettings.artifactBytes),
      ageMs: config.get(ToolSettings.artifactAge),
    }))
    const { calling, called } = hooks.of(points)
    this.calling = calling
    this.called = called
    this.calls = new Calls(this)
    kernel.scope.defer('thread of patterns', () => this.#patterns.close())
    this.decisions = new Decisions(this)
    this.asking = new Asking(needs, this.approvals, (waiting, answer, actor) =>
      this.decisions.answered(waiting, answer, actor),
    )
  }

  async list(scope: ToolPlace): Promise<readonly JudgedTool[]> {
    const scene = await this.scene(scope)
    const all = () => [...this.#shown(scene, '', Number.POSITIVE_INFINITY)].map(listed)
    if (scene.scope.agent) return all()
    // Without an agent, the result depends only on the catalog and the rules.
    const rules = JSON.stringify(scene.rules)
    const known = this.#listed.get(scene.catalog)
    if (known?.rules === rules) return known.tools
    const made = { rules, tools: all() }
    this.#listed.set(scene.catalog, made)
    return made.tools
  }

  async search(scope: ToolPlace, query: string, limit: number): Promise<readonly JudgedTool[]> {
    const scene = await this.scene(scope)
    return [...this.#shown(scene, query, limit)].map(listed)
  }

  async complete(scope: ToolPlace): Promise<readonly string[]> {
    return this.#catalogs.complete(scope)
  }

  async find(scope: ToolPlace, id: string): Promise<JudgedTool> {
    const scene = await this.scene(scope)
    const entry = this.entryOf(scene, id)
    return { ...entry, decision: judge(entry, scene.scope, scene.rules) }
  }

  call(id: string, input: unknown, by: ToolCaller, how: CallOptions = {}): Promise<ToolOutcome> {
    return this.calls.call(id, input, by, how)
  }

  /** Validates the input of a call against the tool's schema. @throws Fault `tool_invalid_input` */
  inputOf(entry: Entry, args: unknown): Promise<Input> {
    const isOwn = entry.backend.kind === 'native'
    return inputOf(entry, args, isOwn ? askHere : questions => this.#patterns.ask(questions))
  }

  digest(value: unknown): string {
    return digestOf(value)
  }

  /** Wire form of the tools listed for a caller. */
  async listed(request: ScopeRequest, actor: ToolCaller['actor'], query = '', limit?: number): Promise<Tool[]> {
    const scope = await this.scopes.resolve(request, actor)
    // A search waits for missing servers, because their tools would appear not to exist.
    if (query !== '') await this.complete(scope)
    const scene = await this.scene(scope)
    const most =
      query === '' && limit === undefined ? Number.POSITIVE_INFINITY : Math.min(Math.max(limit ?? LIMIT, 1), MAX_LIMIT)
    return [...this.#shown(scene, query, most)].map(([entry, judgement]) => toolToWire(entry, scene.scope, judgement))
  }

  async shown(request: ScopeRequest, actor: ToolCaller['actor'], id: string): Promise<Tool> {
    const scene = await this.wanted(await this.scopes.resolve(request, actor), id).catch(error => {
      throw error instanceof Fault && error.code === 'tool_unavailable'
        ? toolFault('tool_not_found', reasonsOf(error), error.message, { toolId: id, next: error.next })
        : error
    })
    const entry = this.entryOf(scene, id)
    return toolToWire(entry, scene.scope, judge(entry, scene.scope, scene.rules))
  }

  async toolsets(request: ScopeRequest, actor: ToolCaller['actor']): Promise<Toolset[]> {
    const scene = await this.scene(await this.scopes.resolve(request, actor))
    return scene.toolsets.list(id => this.#denied(scene, id))
  }

  async toolset(request: ScopeRequest, actor: ToolCaller['actor'], id: string): Promise<Toolset> {
    const scene = await this.scene(await this.scopes.resolve(request, actor))
    const toolset = scene.toolsets.show(id, tool => this.#denied(scene, tool))
    if (!toolset)
      throw toolFault('tool_not_found', ['toolset_unknown'], 'no such toolset', { next: command('toolset list') })
    return toolset
  }

  /** @param id the only tool of interest, see {@link Catalogs.of} */
  async scene(scope: ToolPlace, id?: string): Promise<Scene> {
    const { config } = this.kernel
    const catalog = await this.#catalogs.of(scope, id)
    const configured = config.get(ToolSettings.toolsets)
    if (this.#toolsets?.catalog !== catalog || this.#toolsets.configured !== configured)
      this.#toolsets = { catalog, configured, made: new Toolsets(catalog.entries, configured) }
    const toolsets = this.#toolsets.made
    return {
      catalog,
      toolsets,
      scope: await this.scopes.judged(scope, ids => toolsets.expand(ids).tools),
      rules: { enabled: config.get(ToolSettings.enabled), externalDefault: config.get(ToolSettings.externalDefault) },
    }
  }

  /**
   * The tools and rules of a place. If the tool is not known yet, its MCP server is first asked for its tools. Throws
   * `tool_unavailable` if that server cannot be reached; a tool that does not exist is no error here.
   */
  async wanted(scope: ToolPlace, id: string): Promise<Scene> {
    const scene = await this.scene(scope, id)
    if (scene.catalog.get(id)) return scene
    const fault = await this.#catalogs.missing(id, scope)
    if (fault) throw fault
    return this.scene(scope)
  }

  /** @throws Fault `tool_not_found`, also for an internal tool */
  entryOf(scene: Scene, id: string): Entry {
    const entry = scene.catalog.get(id)
    if (entry && entry.descriptor.visibility !== 'internal') return entry
    const own = scene.catalog.get(`service__${id}`)
    throw noTool(id, own && own.descriptor.visibility !== 'internal' ? own.descriptor.id : undefined)
  }

  /** The approval of that id; an agent sees only those of its own session. @throws Fault `approval_not_found` */
  approvalOf(id: string, session?: string): Waiting {
    const waiting = this.approvals.find(id)
    if (!waiting || (session !== undefined && waiting.by.sessionId !== session))
      throw ApprovalErrors.approval_not_found()
    return waiting
  }

  /** Drops cached tools after a change of records. */
  renewRecords(): void {
    this.extension.renew([])
  }

  #denied(scene: Scene, id: string) {
    const entry = scene.catalog.get(id)
    if (!entry) return ['tool_unknown'] as const
    const { callable, reasons } = judge(entry, scene.scope, scene.rules)
    return callable ? undefined : reasons
  }

  *#shown({ catalog, scope, rules }: Scene, query: string, limit: number): Generator<readonly [Entry, Judgement]> {
    let left = limit
    for (const entry of catalog.find(query)) {
      if (left <= 0) return
      const judgement = judge(entry, scope, rules)
      if (!isShown(entry, scope, judgement)) continue
      left--
      yield [entry, judgement]
    }
  }
}
