import { clip } from '../../../../kernel/kit/text.js'
import { faultOf, messageOf } from '../../../../kernel/plugin.js'
import type { RecordedPage, SessionsApi } from '../../../work/sessions/api.js'
import type { InboundEvent } from '../api.js'
import type { Deliveries } from '../delivery/delivery.js'
import type { Delivery } from '../delivery/table.js'
import type { Instance, Instances } from '../instances/instances.js'
import type { K } from '../needs.js'
import { hasApprovers, mayApprove } from './policy.js'
import { CODE_LENGTH, CODE_LETTERS, type Word } from './words.js'

type Content = RecordedPage['events'][number]['content']

/** An open question in a chat. */
interface Open {
  readonly bridgeId: string
  readonly sessionId: string
  readonly turnId: string
  readonly requestId: string
  readonly kind: 'permission' | 'clarification'
  readonly choices: readonly string[]
}

/** Concurrently open questions. */
const MAX_OPEN = 1000
/** Messages per question. */
const PAGES = 3

/**
 * Questions of agents in the chats where their turns began. They live in memory only, because a turn and its questions
 * end with the daemon. A code is valid once.
 */
export class Questions {
  readonly #open = new Map<string, Open>()

  constructor(
    private readonly kernel: K,
    private readonly instances: Instances,
    private readonly deliveries: Deliveries,
  ) {}

  /** Handles an event of a turn that a chat follows. */
  async heard(delivery: Delivery, type: string, content: Content): Promise<void> {
    const kind = type === 'permission' ? 'permission' : content.note === 'clarification' ? 'clarification' : undefined
    const { request_id: requestId } = content
    if (!kind || typeof requestId !== 'string') return
    if (content.status === 'resolved') await this.#resolved(requestId)
    if (content.status === 'pending') await this.#ask(delivery, kind, requestId, content)
  }

  /** Whether a code belongs to an open question of an instance. */
  has(bridgeId: string, code: string): boolean {
    return this.#open.get(code)?.bridgeId === bridgeId
  }

  /** Handles a person's answer; returns the text for the chat, and the reason if it had no effect. */
  async answer(
    sessions: SessionsApi,
    instance: Instance,
    event: InboundEvent,
    word: Exclude<Word, { says: 'cancel' | 'new' }>,
    cause: string,
  ): Promise<{ readonly text: string; readonly reason?: string }> {
    const { code } = word
    const open = this.#open.get(code)
    if (!open || open.bridgeId !== instance.id)
      return { text: `No open question has the code ${code}.`, reason: 'question_unknown' }
    if (!mayApprove(instance, this.instances.provider(instance.id), event.sender))
      return {
        text: 'You may not answer this: the operator has not allowed you, or this platform does not authenticate its users.',
        reason: 'not_an_approver',
      }
    // Removed first, so that a second answer finds nothing.
    this.#open.delete(code)
    try {
      return { text: await this.#give(sessions, instance, event, open, word, cause) }
    } catch (error) {
      const { code: problem } = faultOf(error)
      const isOver = problem === 'permission_not_found' || problem === 'clarification_not_found'
      if (!isOver && problem !== 'clarification_answered') this.#open.set(code, open)
      return { text: `The answer was not accepted: ${messageOf(error)}`, reason: problem }
    }
  }

  async #give(
    sessions: SessionsApi,
    { platform }: Instance,
    { sender }: InboundEvent,
    { sessionId, turnId, requestId, kind, choices }: Open,
    word: Exclude<Word, { says: 'cancel' | 'new' }>,
    cause: string,
  ): Promise<string> {
    if (kind === 'clarification') {
      const text = word.says === 'reply' ? word.text.trim() : ''
      const index = /^\d{1,3}$/.test(text) ? Number(text) - 1 : choices.indexOf(text)
      const isDeclined = word.says === 'deny'
      if (word.says === 'allow') throw new Error('this question is answered by reply, the code and a text')
      sessions.clarify(
        sessionId,
        requestId,
        isDeclined ? { decline: true } : choices[index] === undefined ? { text } : { choice_index: index },
      )
      return isDeclined ? 'Declined.' : 'Answered.'
    }
    if (word.says === 'reply') throw new Error('this question is answered by allow or deny, and the code')
    const actor = { ...this.kernel.actor, onBehalfOf: { kind: 'person', id: `${platform}:${sender.id}` }, cause }
    const decision = word.says === 'allow' ? 'allow-once' : 'reject-once'
    const allowed = await sessions.answer(sessionId, { request_id: requestId, turn_id: turnId, decision }, actor)
    return allowed ? 'Allowed.' : 'Denied.'
  }

  async #ask(delivery: Delivery, kind: Open['kind'], requestId: string, content: Content): Promise<void> {
    const { bridgeId, sessionId = '', turnId = '', target, replyTo } = delivery
    const waits = this.kernel.needs.sessions.current?.requests(sessionId).some(one => one.interaction_id === requestId)
    const instance = this.instances.get(bridgeId)
    // After a restart the event is read again, and the question may be answered by now.
    if (!waits || !instance || this.#open.size >= MAX_OPEN) return
    const choices = Array.isArray(content.choices) ? content.choices.map(String) : []
    const code = this.#code()
    this.#open.set(code, { bridgeId, sessionId, turnId, requestId, kind, choices })
    const answer = answerBy(kind, code, hasApprovers(instance), sessionId)
    const limit = this.instances.provider(bridgeId)?.capabilities.textLimit ?? 2000
    const text = kind === 'permission' ? permissionText(content) : clarificationText(content, choices)
    const room = Math.max(200, PAGES * Math.floor(limit * 0.6) - answer.length)
    const body = text.length > room ? `${clip(text, room)}\n… the rest: svc session interactions ${sessionId}` : text
    const expires = Date.parse(String(content.expires_at))
    const ttl = Number.isNaN(expires) ? undefined : Math.max(1, expires - this.kernel.clock.now())
    await this.kernel.db.tx(t =>
      this.deliveries.send(
        t,
        {
          ...{
            bridgeId,
            kind: 'question' as const,
            key: `q:${requestId}`,
            source: 'bridge',
            target,
            replyTo,
            sessionId,
          },
          ...(ttl !== undefined && { ttl }),
        },
        `${closed(body)}\n${answer}`,
      ),
    )
  }

  async #resolved(requestId: string): Promise<void> {
    for (const [code, open] of this.#open) if (open.requestId === requestId) this.#open.delete(code)
    await this.deliveries.withdraw(`q:${requestId}`, 'answered')
  }

  #code(): string {
    for (;;) {
      const bytes = Buffer.from(this.kernel.ids.hex(2 * CODE_LENGTH), 'hex')
      let code = ''
      for (let n = 0; n < CODE_LENGTH; n++) code += CODE_LETTERS[bytes.readUInt16BE(2 * n) % CODE_LETTERS.length]
      if (!this.#open.has(code)) return code
    }
  }
}

function answerBy(kind: Open['kind'], code: string, hasAnyone: boolean, sessionId: string): string {
  if (!hasAnyone)
    return `This cannot be answered here. Answer it with: svc session ${kind === 'permission' ? 'approve' : 'clarify'} ${sessionId}`
  return kind === 'permission'
    ? `Answer: allow ${code}, or deny ${code}`
    : `Answer: reply ${code} and your words, or deny ${code}`
}

function permissionText({ title, kind, command, paths, outside, diffs }: Content): string {
  const lines = [`The agent asks for permission (${String(kind)}): ${String(title)}`]
  if (typeof command === 'string' && command !== title) lines.push('```', command, '```')
  if (Array.isArray(paths) && paths.length > 0) lines.push(`Files: ${paths.slice(0, 20).join(', ')}`)
  if (Array.isArray(outside) && outside.length > 0)
    lines.push(`Outside of the workspace: ${outside.slice(0, 20).join(', ')}`)
  for (const diff of Array.isArray(diffs) ? diffs.slice(0, 10) : []) {
    const { path, added, removed, patch } = (diff ?? {}) as Record<string, unknown>
    lines.push(`${String(path)} +${String(added)} -${String(removed)}`)
    if (typeof patch === 'string' && patch !== '') lines.push('```diff', patch.trimEnd(), '```')
  }
  return lines.join('\n')
}

function clarificationText({ question }: Content, choices: readonly string[]): string {
  return [`The agent asks: ${String(question)}`, ...choices.map((choice, n) => `${n + 1}. ${choice}`)].join('\n')
}

/** Closes a code fence that a cut left open. */
const closed = (text: string): string => ((text.match(/^```/gm)?.length ?? 0) % 2 === 1 ? `${text}\n\`\`\`` : text)
