import { command } from '../../../kernel/kit/commands/command-line.js'
import { faultOf, iso } from '../../../kernel/plugin.js'
import { MAX_INPUT_BYTES } from '../../../schemas/tools.js'
import { ToolAllowances, type ToolCaller, type ToolDescriptor, type ToolOutcome, toolFault } from './api.js'
import type { Waiting } from './approvals/approvals.js'
import { digestOf } from './digest.js'
import { ApprovalRequested } from './events.js'
import { noTool } from './faults.js'
import { judge, judgeLeaving } from './policy.js'
import type { Entry } from './registry/catalog.js'
import { type AskPatterns, inputProblem } from './registry/schema-check.js'
import { aboutOf, execute } from './results/execution.js'
import type { Scene, ToolsService } from './service.js'
import { riskier } from './tool-kind.js'
import { resultToWire } from './wire.js'

export type Input = Readonly<Record<string, unknown>>

export interface CallOptions {
  readonly approvalToken?: string
  readonly wait?: boolean
  readonly among?: (tool: ToolDescriptor) => boolean
}

const isObject = (value: unknown): value is Input =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Executes calls: rules, approval, hooks and result. */
export class Calls {
  constructor(private readonly tools: ToolsService) {}

  async call(
    id: string,
    args: unknown,
    by: ToolCaller,
    { approvalToken, wait = false, among }: CallOptions = {},
  ): Promise<ToolOutcome> {
    const { scene, entry, input } = await this.#wished(id, args, by, among)
    const inputDigest = digestOf(input)
    const isAsked = await this.#judged(scene, entry, input, by)
    if (isAsked) {
      const { id: toolId, digest: toolDigest } = entry.descriptor
      const bound = { toolId, toolDigest, sessionId: by.sessionId ?? '', inputDigest }
      if (approvalToken !== undefined) this.tools.approvals.redeem(approvalToken, bound)
      else {
        await this.#approved(entry, input, inputDigest, by, wait)
        return this.#runAllowed(entry, input, by)
      }
    }
    return execute(this.tools, entry, input, by)
  }

  /** The scene after the backend tried to make an unavailable tool available. */
  async #readied(id: string, by: ToolCaller, among: CallOptions['among']): Promise<Scene> {
    const scene = await this.tools.wanted(by, id)
    const { backend, descriptor, unavailable = [] } = this.tools.entryOf(scene, id)
    if (among && !among(descriptor)) throw noTool(id)
    if (unavailable.length === 0 || !backend.revive) return scene
    await backend.revive(descriptor, by)
    return this.tools.scene(by)
  }

  /**
   * The call after all hooks. A hook can replace the tool once; all rules and hooks then apply to the new one.
   * Throws when a rule or a hook refuses the call.
   */
  async #wished(
    id: string,
    args: unknown,
    by: ToolCaller,
    among: CallOptions['among'],
    isRedirected = false,
  ): Promise<{ readonly scene: Scene; readonly entry: Entry; readonly input: Input }> {
    const scene = await this.#readied(id, by, among)
    const entry = this.tools.entryOf(scene, id)
    mustBeCallable(entry, scene)
    const input = await this.tools.inputOf(entry, args)
    const { descriptor } = entry
    const wish = await this.tools.calling.run({ toolId: id, risk: descriptor.risk, input, place: by })
    if (wish.deny !== undefined) throw deniedByHook(id, `a hook refused it: ${wish.deny}`)
    if (wish.toolId !== id) {
      if (isRedirected) throw deniedByHook(id, `hooks redirected this call twice, the second time to ${wish.toolId}`)
      return this.#wished(wish.toolId, wish.input, by, among, true)
    }
    return {
      scene,
      entry: { ...entry, descriptor: { ...descriptor, risk: riskier(wish.risk, descriptor.risk) } },
      input: wish.input === input ? input : await this.tools.inputOf(entry, wish.input),
    }
  }

  /** Whether an approval is needed. Throws if a rule or a remembered decision refuses the call. */
  async #judged({ scope, rules }: Scene, entry: Entry, input: Input, by: ToolCaller): Promise<boolean> {
    const { id, digest } = entry.descriptor
    const isListed = mustBeCallable(entry, { scope, rules })
    if (!scope.session || scope.workspaceId === undefined) return false
    const leaves = entry.backend.leaves?.(entry.descriptor, input, by) ?? false
    const approvalRequired = (leaves && judgeLeaving(id, scope.session)) || isListed
    const grant = this.tools.grants.decide({
      workspaceId: scope.workspaceId,
      agentName: scope.agentName ?? '',
      toolId: id,
      toolDigest: digest,
      inputDigest: digestOf(input),
    })
    if (!grant) {
      const isAllowed = this.#allowedForSession(entry, input, by)
      return approvalRequired && !isAllowed && (leaves || !this.#needsNoPerson(entry, input, by))
    }
    // An approval for another workspace lasts at most for the session.
    if (leaves && grant.decision !== 'reject') return approvalRequired && !this.#allowedForSession(entry, input, by)
    await this.tools.grants.used(grant)
    if (grant.decision === 'reject')
      throw toolFault('tool_denied', ['policy_denied'], 'a person rejected this call permanently', {
        toolId: id,
        details: { layer: 'approval' },
        next: command('tool grants delete', grant.id),
      })
    return false
  }

  /** Whether a plugin exempts this call from the approval. */
  #needsNoPerson({ descriptor }: Entry, input: Input, { sessionId }: ToolCaller): boolean {
    const { backend, id, requiresInteraction, risk } = descriptor
    if (sessionId === undefined || backend.kind !== 'native' || risk !== 'mutating' || requiresInteraction) return false
    return this.tools.kernel.collect(ToolAllowances).some(({ entry }) => entry.allows(id, input, sessionId))
  }

  /** Whether a person allowed it for the rest of the session. Throws if it was rejected for that time. */
  #allowedForSession({ descriptor: { id, digest } }: Entry, input: Input, by: ToolCaller): boolean {
    const inputDigest = digestOf(input)
    const bound = { toolId: id, toolDigest: digest, sessionId: by.sessionId ?? '', inputDigest }
    const decision = this.tools.approvals.ofSession(bound)
    if (decision === 'reject')
      throw toolFault('tool_denied', ['policy_denied'], 'a person rejected this call for the rest of the session', {
        toolId: id,
        details: { layer: 'approval' },
      })
    return decision === 'allow'
  }

  /** Waits for the approval, or throws that one is needed. */
  async #approved(entry: Entry, input: Input, inputDigest: string, by: ToolCaller, waits: boolean): Promise<void> {
    const { approvals, kernel } = this.tools
    const tool = entry.descriptor
    const waiting = approvals.open({ tool, input, inputDigest, by, waits })
    await kernel.db.tx(t =>
      kernel.needs.events.emit(
        t,
        ApprovalRequested,
        { ...aboutOf(tool.id, by), approval_id: waiting.id },
        { actor: by.actor },
      ),
    )
    this.tools.asking.show(waiting)
    if (waits) return approvals.allowed(waiting)
    throw toolFault('tool_approval_required', ['approval_required'], `${tool.id} requires approval`, {
      toolId: tool.id,
      details: { approval_id: waiting.id, expires_at: iso(waiting.expiresAt), layer: 'approval' },
      next: command('tool approve', waiting.id),
    })
  }

  /** Runs an approved call: the rules are checked again after the wait, and the tool must be the approved version. */
  async #runAllowed(
    { descriptor: { id, digest } }: Pick<Entry, 'descriptor'>,
    input: Input,
    by: ToolCaller,
  ): Promise<ToolOutcome> {
    const scene = await this.tools.scene(by)
    const entry = this.tools.entryOf(scene, id)
    if (entry.descriptor.digest !== digest)
      throw toolFault('tool_denied', ['approval_token_mismatch'], 'the tool has changed since it was allowed', {
        toolId: id,
      })
    await this.#judged(scene, entry, input, by)
    const wished = await this.#wished(id, input, by, undefined)
    if (wished.entry.descriptor.id !== id || digestOf(wished.input) !== digestOf(input))
      throw deniedByHook(id, 'a hook changed the call after its approval')
    return execute(this.tools, wished.entry, input, by)
  }

  /** Runs an approved call without a waiting caller. */
  runLater(waiting: Waiting): void {
    const { tool, input } = waiting
    // The original request has ended, so only the daemon's shutdown aborts this call.
    const by = { ...waiting.by, signal: this.tools.kernel.scope.signal }
    waiting.execution = 'running'
    void this.#runAllowed({ descriptor: tool }, input, by).then(
      outcome => {
        waiting.execution = outcome.result.isError ? 'failed' : 'completed'
        waiting.result = resultToWire(outcome)
      },
      error => {
        const { code, message } = faultOf(error)
        waiting.execution = 'failed'
        waiting.error = { code, message }
      },
    )
  }
}

/** Whether an approval is needed. Throws if a rule denies the call for every input. */
function mustBeCallable(entry: Entry, { scope, rules }: Pick<Scene, 'scope' | 'rules'>): boolean {
  const { id } = entry.descriptor
  const { callable, approvalRequired, reasons, deniedBy } = judge(entry, scope, rules)
  if (callable) return approvalRequired
  const isAway = deniedBy === 'availability'
  const code = entry.conflicted ? 'tool_conflict' : isAway ? 'tool_unavailable' : 'tool_denied'
  throw toolFault(code, reasons, isAway ? entry.why : undefined, {
    toolId: id,
    details: { layer: deniedBy ?? '' },
    next: command('tool show', id),
  })
}

/** Validates the input of a call against the tool's schema. @throws Fault `tool_invalid_input` */
export async function inputOf({ descriptor }: Entry, args: unknown, ask: AskPatterns): Promise<Input> {
  const { id, inputSchema } = descriptor
  const input = args ?? {}
  if (!isObject(input))
    throw toolFault('tool_invalid_input', ['schema_invalid'], 'input: expected an object', { toolId: id })
  const bytes = Buffer.byteLength(JSON.stringify(input))
  if (bytes > MAX_INPUT_BYTES)
    throw toolFault('tool_invalid_input', ['schema_invalid'], `input: at most ${MAX_INPUT_BYTES} bytes`, { toolId: id })
  const problem = await inputProblem(inputSchema, input, ask)
  if (problem)
    throw toolFault('tool_invalid_input', ['schema_invalid'], problem, { toolId: id, next: command('tool show', id) })
  return input
}

const deniedByHook = (toolId: string, why: string) =>
  toolFault('tool_denied', ['hook_denied'], why, { toolId, details: { layer: 'hooks' } })
