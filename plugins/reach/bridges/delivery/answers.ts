import { messageOf, type Tx } from '../../../../kernel/plugin.js'
import type { RecordedPage } from '../../../work/sessions/api.js'
import type { BridgeCapabilities, BridgeProvider } from '../adapter.js'
import type { Instance, Instances } from '../instances/instances.js'
import type { K } from '../needs.js'
import { deliver } from './attempt.js'
import { EDIT_MS, type Lanes, requestOf } from './lanes.js'
import type { Ledger } from './ledger.js'
import { quiet } from './mentions.js'
import { type ProgressMode, Projection, type TurnEnd } from './projection.js'
import { textsOf } from './split.js'
import type { Delivery, Part } from './table.js'
import { showTyping } from './typing.js'

/** Maximum number of messages per answer. */
const MAX_PARTS = 20
/** Milliseconds between the first words of an answer and its first message, which then has more than a word. */
const GATHER_MS = 700
/** Milliseconds between retries of reading a journal, and their number. */
const AGAIN_MS = 500
const LOOKS = 20
/** Rules for texts while the platform's adapter is not loaded. */
const PLAIN: Pick<BridgeCapabilities, 'textLimit' | 'textUnit' | 'fences' | 'edits'> = {
  ...{ textLimit: 2000, textUnit: 'code_points', fences: false, edits: false },
}
/** Platforms that show the progress of tools by default. */
const SHOWS_TOOLS: ReadonlySet<string> = new Set(['slack', 'telegram', 'discord'])

/** An answer in progress. */
interface Growing {
  readonly delivery: Delivery
  readonly projection: Projection
  readonly ending: AbortController
  /** Time of its first words. */
  firstAt: number | undefined
  /** Texts of its parts as shown on the platform; undefined: unknown, after a restart. */
  readonly shown: (string | undefined)[]
  /** Tools with a message of their own. */
  readonly announcedTools: Set<string>
  /** Whether its turn began under an earlier daemon, so that the shown text is unknown. */
  readonly isOld: boolean
  /** Whether its next change is the first one after a restart. */
  isResumed: boolean
  /** Whether the platform refuses changes of it. */
  isStill: boolean
  /** Ends of the answers to earlier prompts of the session: their turns end before this one begins. */
  readonly earlier: Promise<unknown>
  done: Promise<void>
}

/** Callbacks for the turns of answers. */
export interface AnswerListener {
  /** Called for an event in the turn of an open answer. */
  heard(delivery: Delivery, event: RecordedPage['events'][number]): Promise<void>
  /**
   * Called at the end of the turn, in the transaction that closes its answer; false: the prompt is sent again, and the
   * answer is withdrawn.
   */
  ended(t: Tx, delivery: Delivery, end: TurnEnd): boolean
  /** Called when the end of the turn is durable. */
  over(delivery: Delivery): void
}

/** Answers of sessions. They are derived from the journal of their turns, so that a repetition gives the same answer. */
export class Answers {
  readonly #growing = new Map<string, Growing>()
  readonly #work = new Set<Promise<void>>()
  #isClosed = false
  listener: AnswerListener = { heard: async () => {}, ended: () => true, over: () => {} }
  lanes!: Lanes

  constructor(
    private readonly kernel: K,
    private readonly instances: Instances,
    private readonly ledger: Ledger,
  ) {}

  /** Current text of a part of a growing answer. */
  textOf(deliveryId: string, part: number): string | undefined {
    const growing = this.#growing.get(deliveryId)
    return growing && this.#texts(growing)[part]
  }

  /** Follows the turn of an answer until it ends. */
  follow(delivery: Delivery, isResumed = false): void {
    if (this.#isClosed || this.#growing.has(delivery.id)) return
    const before = [...this.#growing.values()].filter(one => one.delivery.sessionId === delivery.sessionId)
    const growing: Growing = {
      ...{ delivery, projection: new Projection(delivery.turnId ?? ''), ending: new AbortController() },
      ...{ earlier: Promise.all(before.map(({ done }) => done)), done: Promise.resolve() },
      ...{
        firstAt: undefined,
        shown: [],
        announcedTools: new Set<string>(),
        isOld: isResumed,
        isResumed,
        isStill: false,
      },
    }
    this.#growing.set(delivery.id, growing)
    const work = this.#follow(growing)
      .catch(error =>
        this.kernel.log.error(`an answer is not delivered: ${messageOf(error)}`, { delivery: delivery.id }),
      )
      .finally(() => {
        this.#growing.delete(delivery.id)
        this.#work.delete(work)
      })
    growing.done = work
    this.#work.add(work)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    for (const { ending } of this.#growing.values()) ending.abort(new Error('the daemon is stopping'))
    await Promise.allSettled([...this.#work])
  }

  async #follow(growing: Growing): Promise<void> {
    const { projection, ending, delivery } = growing
    const written = new AbortController()
    const isWriting = () => projection.isBegun && !projection.end
    if (this.instances.get(delivery.bridgeId)?.deliveryDefaults?.progress?.typing === true) {
      const signal = AbortSignal.any([ending.signal, written.signal])
      void showTyping(this.kernel, this.instances, delivery, isWriting, signal)
    }
    await this.#read(growing).finally(() => written.abort())
    if (!ending.signal.aborted && projection.end) await this.#close(growing, projection.end)
  }

  /** Reads the journal of an answer until its turn ends. */
  async #read(growing: Growing): Promise<void> {
    const { delivery, projection, ending } = growing
    const { sessionId = '' } = delivery
    const begin = () => this.kernel.needs.sessions.current?.continueQueue(sessionId)
    if (growing.isOld) await begin()?.catch(error => this.kernel.log.warn(`a prompt waits: ${messageOf(error)}`))
    let next = delivery.from ?? 1
    let failures = 0
    while (!ending.signal.aborted && !projection.end) {
      const sessions = this.kernel.needs.sessions.current
      let page: RecordedPage | undefined
      let problem = 'the sessions of this daemon do not run'
      try {
        if (sessions && !sessions.get(sessionId)) {
          projection.end = { how: 'failed', why: 'the session was deleted', unsent: false }
          break
        }
        page = await sessions?.points.journal(sessionId, next, ending.signal)
      } catch (error) {
        problem = messageOf(error)
      }
      if (ending.signal.aborted) return
      if (!page || page.next === next) {
        // The journal of a stopping session is closed; the next attempt reads it again.
        failures++
        if (sessions && failures > LOOKS && !page) projection.end = { how: 'failed', why: problem, unsent: false }
        else await this.kernel.clock.sleep(AGAIN_MS, ending.signal).catch(() => {})
        continue
      }
      failures = 0
      next = page.next
      let hasChanged = false
      for (const event of page.events) {
        hasChanged = projection.add(event) || hasChanged
        if (event.turnId === projection.turnId) await this.listener.heard(delivery, event)
      }
      if (!hasChanged) continue
      // Followers of one journal wake up together: without the wait, a later answer could come before an earlier one.
      await growing.earlier
      if (!projection.end) await this.#grow(growing)
    }
    await growing.earlier
  }

  // Growing an answer.

  async #grow(growing: Growing): Promise<void> {
    const { delivery } = growing
    const instance = this.instances.get(delivery.bridgeId)
    if (!instance) return
    const can = this.#can(delivery.bridgeId)
    if (isSeparate(instance)) {
      await this.#extend(growing)
      await this.#tell(growing, instance)
    } else if (can.edits && !growing.isStill) {
      const { text } = growing.projection
      if (text.trim() === '' && growing.projection.progress(modeOf(instance)) === '') return
      growing.firstAt ??= this.kernel.clock.now()
      const kind = this.ledger.part(this.kernel.db, delivery.id, 0) ? 'delta' : 'start'
      const at = growing.firstAt + GATHER_MS
      const run = (provider: BridgeProvider, signal: AbortSignal) => this.#show(growing, provider, signal)
      await this.lanes.show(delivery.lane, { key: delivery.id, kind, at, run })
    } else if (instance.deliveryDefaults?.progress?.tool_progress !== undefined) await this.#tell(growing, instance)
  }

  /** Sends the first missing part, or edits one with a changed text. Returns the pause in milliseconds. */
  async #show(growing: Growing, provider: BridgeProvider, signal: AbortSignal): Promise<number> {
    const { delivery, shown } = growing
    if (growing.projection.end) return 0
    const texts = this.#texts(growing)
    const of = this.ledger.partsOf(this.kernel.db, delivery.id)
    const at = texts.findIndex((text, n) => of[n] === undefined || (shown[n] ?? of[n]?.text) !== text)
    const [text, part] = [texts[at], of[at]]
    if (text === undefined) return 0
    if (!part) {
      await this.kernel.db.tx(t => this.ledger.append(t, delivery, at, text, 'start'))
      this.lanes.wake(delivery.lane)
      return EDIT_MS
    }
    if (part.state !== 'delivered' || part.remoteId === undefined) return 0
    const event = growing.isResumed ? 'resume' : 'delta'
    growing.isResumed = false
    const result = await deliver(this.kernel.clock, provider, requestOf(delivery, { ...part, text }, event), signal)
    if (result.status === 'delivered') shown[at] = text
    else if (result.status === 'not_sent' && result.permanent) growing.isStill = true
    // Text that arrived in the meantime is shown after a pause.
    const pause = result.status === 'not_sent' ? Math.max(EDIT_MS, result.retry_after_ms ?? 0) : EDIT_MS
    if (!growing.projection.end && this.#texts(growing).some((one, n) => one !== shown[n])) await this.#grow(growing)
    return pause
  }

  /** Sends completed texts of the agent as separate messages, which are not changed later. */
  async #extend({ delivery, projection }: Growing): Promise<void> {
    if (projection.end) return
    const texts = this.#messages(delivery.bridgeId, projection.segments.slice(0, projection.closed))
    const has = this.ledger.partsOf(this.kernel.db, delivery.id).length
    // The last message is reserved for the note about omitted text.
    const more = texts.slice(has, MAX_PARTS - 1)
    if (more.length === 0) return
    await this.kernel.db.tx(t => {
      for (const [n, text] of more.entries()) this.ledger.append(t, delivery, has + n, text, 'final')
    })
    await this.lanes.entered(delivery.lane, delivery.bridgeId)
  }

  /** Sends the progress of a tool as a separate message if the mode includes it, for platforms without edits. */
  async #tell(growing: Growing, instance: Instance): Promise<void> {
    const { delivery, projection } = growing
    const mode = modeOf(instance)
    const { newest } = projection
    if (mode === 'off' || newest === undefined || growing.announcedTools.has(newest)) return
    growing.announcedTools.add(newest)
    const text = quiet(`… ${newest}`)
    const run = async (provider: BridgeProvider, signal: AbortSignal) => {
      if (projection.end) return 0
      const request = {
        ...{ bridge_instance_id: delivery.bridgeId, delivery_id: delivery.id, part: 0, event: 'progress' as const },
        ...{ target: delivery.target, text, nonce: this.kernel.ids.id('msg') },
      }
      const { status } = await deliver(this.kernel.clock, provider, request, signal)
      if (status === 'unknown')
        await this.kernel.db.tx(t =>
          this.instances.count(t, delivery.bridgeId, 'dropped', 'progress_delivery_indeterminate'),
        )
      return EDIT_MS
    }
    await this.lanes.show(delivery.lane, {
      ...{ key: `${delivery.id} ${newest}`, kind: 'progress' as const, at: 0, run },
    })
  }

  /** Current texts of the parts of a growing answer, with the progress of its tools at the end. */
  #texts({ delivery, projection }: Growing): string[] {
    const instance = this.instances.get(delivery.bridgeId)
    if (instance && isSeparate(instance)) return this.#messages(delivery.bridgeId, projection.segments)
    const progress = instance ? projection.progress(modeOf(instance)) : ''
    const text = [projection.text.trimEnd(), progress].filter(one => one !== '').join('\n\n')
    return this.#split(delivery.bridgeId, text)
  }

  #split(bridgeId: string, text: string): string[] {
    return this.#messages(bridgeId, [text])
  }

  /** Splits texts into messages, at least one for each. */
  #messages(bridgeId: string, from: readonly string[]): string[] {
    const texts = from.flatMap(text => textsOf(quiet(text.trimEnd()), this.#can(bridgeId)))
    if (texts.length <= MAX_PARTS) return texts
    const rest = texts.slice(MAX_PARTS - 1).reduce((sum, one) => sum + one.length, 0)
    return [...texts.slice(0, MAX_PARTS - 1), `… and ${rest} more characters; see the session for the full text`]
  }

  #can(bridgeId: string) {
    return this.instances.provider(bridgeId)?.capabilities ?? PLAIN
  }

  // Ending an answer.

  async #close({ delivery, projection, shown, isOld }: Growing, end: TurnEnd): Promise<void> {
    await this.lanes.hide(delivery.lane, delivery.id)
    const instance = this.instances.get(delivery.bridgeId)
    const isWhole = instance !== undefined && isSeparate(instance)
    const texts = this.#messages(delivery.bridgeId, isWhole ? projection.segments : [projection.text])
    const closing = closingOf(end, texts.length > 0, this.#isStopped(delivery))
    await this.kernel.db.tx(t => {
      if (!this.ledger.get(t, delivery.id)?.open) return
      if (!this.listener.ended(t, delivery, end)) {
        this.ledger.delete(t, delivery.id)
        return
      }
      const of = this.ledger.partsOf(t, delivery.id)
      const more = texts.flatMap((text, n) => {
        const part = of[n]
        return part ? this.#finish(t, part, text, shown[n] ?? (isOld && !isWhole ? undefined : part.text)) : [text]
      })
      let next = of.length
      for (const text of more) this.ledger.append(t, delivery, next++, text, 'final')
      if (closing !== undefined) this.ledger.append(t, delivery, next, quiet(closing), 'error')
      this.ledger.setOpen(t, delivery.id, false)
    })
    this.listener.over(delivery)
    await this.lanes.entered(delivery.lane, delivery.bridgeId)
  }

  /** Gives a part sent during growth its final text; returns text that needs another part. */
  #finish(t: Tx, part: Part, text: string, shown: string | undefined): string[] {
    const { ledger } = this
    const expiresAt = this.kernel.clock.now() + (ledger.get(t, part.deliveryId)?.ttl ?? 0)
    const last = { event: 'final' as const, expiresAt }
    if (part.state !== 'delivered') ledger.change(t, part, { lastText: text, ...last })
    else if (part.remoteId !== undefined) {
      // The shown text is not stored with each edit: unless it surely equals this text, the message is edited again.
      if (shown !== text) ledger.move(t, part, 'queued', { text, attempts: 0, ...last })
      else ledger.change(t, part, last)
    } else if (part.text !== text) return [text.startsWith(part.text) ? text.slice(part.text.length).trimStart() : text]
    return []
  }

  /** Whether the daemon is stopping, or the session stopped without a person's request. */
  #isStopped({ sessionId = '' }: Delivery): boolean {
    const state = this.kernel.needs.sessions.current?.get(sessionId)?.state
    return this.kernel.needs.daemon.draining || (state !== undefined && state !== 'active')
  }
}

/** Whether an answer is sent as separate messages without edits. */
const isSeparate = ({ deliveryDefaults }: Instance): boolean => deliveryDefaults?.progress?.grouping === 'separate'

function modeOf({ platform, deliveryDefaults }: Instance): ProgressMode {
  return deliveryDefaults?.progress?.tool_progress ?? (SHOWS_TOOLS.has(platform) ? 'new' : 'off')
}

/** Note behind an answer that did not end well or has no text. */
function closingOf(end: TurnEnd, hasText: boolean, isStopped: boolean): string | undefined {
  switch (end.how) {
    case 'done':
      return hasText ? undefined : 'The agent ended without an answer.'
    case 'canceled':
      return isStopped ? 'This was interrupted, because the agent was stopped. Ask again.' : 'Canceled.'
    case 'dropped':
      return 'This question was removed from the queue without an answer.'
    case 'failed':
      return `The agent failed: ${end.why}. Ask again.`
  }
}
