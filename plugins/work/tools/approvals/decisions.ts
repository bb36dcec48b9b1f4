import { command } from '../../../../kernel/kit/commands/command-line.js'
import { type Actor, iso, KernelErrors } from '../../../../kernel/plugin.js'
import type { ApprovalReply, Grant, MintApprovalBody, PutGrantBody } from '../../../../schemas/tools.js'
import { agentSessionOf } from '../../../access/identity/api.js'
import { toolFault } from '../api.js'
import { digestOf } from '../digest.js'
import { ApprovalDecided } from '../events.js'
import { ApprovalErrors } from '../faults.js'
import { aboutOf } from '../results/execution.js'
import type { ToolsService } from '../service.js'
import { approvalToWire, type Decision, type Waiting } from './approvals.js'

/** Decisions of people about agents' calls. */
export class Decisions {
  /** Ids of approvals whose decision is being stored. */
  readonly #deciding = new Set<string>()

  constructor(private readonly tools: ToolsService) {}

  /**
   * Creates a token for one call of a session, on a person's request. Throws `tool_denied` for an agent, which must not
   * approve calls.
   */
  async mint(id: string, body: MintApprovalBody, actor: Actor) {
    mustBePerson(actor)
    const scope = await this.tools.scopes.resolve(body, actor)
    const scene = await this.tools.scene(scope)
    const entry = this.tools.entryOf(scene, id)
    const digest = body.input === undefined ? body.input_digest : digestOf(await this.tools.inputOf(entry, body.input))
    if (digest === undefined || !/^[0-9a-f]{64}$/.test(digest))
      throw toolFault(
        'tool_invalid_input',
        ['schema_invalid'],
        'name the input, or its digest: 64 hexadecimal digits',
        { toolId: id },
      )
    if (body.input !== undefined && body.input_digest !== undefined && body.input_digest !== digest)
      throw toolFault('tool_invalid_input', ['schema_invalid'], 'input_digest is not that of the input', { toolId: id })
    const { token, expiresAt } = this.tools.approvals.mint({
      toolId: id,
      toolDigest: entry.descriptor.digest,
      sessionId: body.session_id,
      inputDigest: digest,
    })
    await this.tools.kernel.db.tx(t =>
      this.tools.kernel.needs.events.emit(t, ApprovalDecided, { ...aboutOf(id, scope), decision: 'token' }, { actor }),
    )
    return { approval_token: token, expires_at: iso(expiresAt), input_digest: digest, tool_id: id }
  }

  /** Applies an answer in the session's stream; "always" lasts for the rest of the session. */
  async answered(waiting: Waiting, answer: `${Decision}-${'once' | 'always'}`, actor: Actor): Promise<void> {
    const decision: Decision = answer.startsWith('allow') ? 'allow' : 'reject'
    await this.decide(waiting, decision, undefined, actor)
    if (answer.endsWith('always')) this.tools.approvals.keepForSession(waiting, decision)
  }

  /**
   * Decides a waiting call. An approved call without a waiting caller runs now, and its result is read with the
   * approval.
   */
  async decide(
    waiting: Waiting,
    decision: Decision,
    remember: 'input' | 'agent' | undefined,
    actor: Actor,
  ): Promise<ApprovalReply> {
    mustBePerson(actor)
    const { id, waits } = waiting
    const over = (what: string) => ApprovalErrors.approval_over(`approval ${id} has ended: ${what}`)
    if (waiting.status !== 'pending') throw over(waiting.status)
    if (this.#deciding.has(id)) throw over('another person is deciding it right now')
    this.#deciding.add(id)
    try {
      // Stored first, so that every executed call has a record of its approval.
      await this.#write(waiting, decision, remember, actor)
    } finally {
      this.#deciding.delete(id)
    }
    if (!this.tools.approvals.decide(waiting, decision)) throw over(waiting.status)
    if (decision === 'allow' && !waits) this.tools.calls.runLater(waiting)
    return approvalToWire(waiting)
  }

  async #write(
    { id, tool, by, inputDigest }: Waiting,
    decision: Decision,
    remember: 'input' | 'agent' | undefined,
    actor: Actor,
  ): Promise<void> {
    await this.tools.kernel.db.tx(t => {
      this.tools.kernel.needs.events.emit(
        t,
        ApprovalDecided,
        { ...aboutOf(tool.id, by), approval_id: id, decision },
        { actor },
      )
      if (remember && by.workspaceId !== undefined)
        this.tools.grants.put(
          t,
          {
            workspaceId: by.workspaceId,
            agentName: by.agentName ?? '',
            toolId: tool.id,
            toolDigest: tool.digest,
            inputDigest: remember === 'input' ? inputDigest : '',
          },
          decision,
        )
    })
  }

  /** Remembers a person's decision for the current version of a tool. */
  async remember(workspaceId: string, body: PutGrantBody, actor: Actor): Promise<Grant> {
    mustBePerson(actor)
    const { id } = await this.tools.kernel.needs.workspaces.find(workspaceId)
    if (body.scope === 'agent' && !body.agent_name)
      throw KernelErrors.invalid_request('agent_name: required for scope agent', {
        next: command('tool grants put', '--help'),
      })
    const entry = this.tools.entryOf(await this.tools.scene({ workspaceId: id }), body.tool_id)
    const about = {
      workspaceId: id,
      agentName: body.scope === 'agent' ? (body.agent_name ?? '') : '',
      toolId: body.tool_id,
      toolDigest: entry.descriptor.digest,
      inputDigest: '',
    }
    return this.tools.kernel.db.tx(t => this.tools.grants.put(t, about, body.decision))
  }
}

function mustBePerson(actor: Actor): void {
  if (agentSessionOf(actor) === undefined) return
  throw toolFault('tool_denied', ['policy_denied'], 'an agent cannot approve requests of agents', {
    details: { layer: 'approval' },
  })
}
