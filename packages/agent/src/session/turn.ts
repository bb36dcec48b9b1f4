import { createHash } from 'node:crypto'
import { type AgentContext, type ClientCapabilities, methods, type StopReason } from '@agentclientprotocol/sdk/unstable'
import { jsonSchema, type ToolSet, tool as toolOf } from 'ai'
import type { Endpoint } from '../endpoint/endpoint.js'
import { EndpointFailure } from '../endpoint/failures.js'
import { type Answer, BrokenAnswer, callModel, type WantedCall } from '../endpoint/model-call.js'
import { edit, run, write } from '../tools/changing.js'
import { plan } from '../tools/plan.js'
import { glob, grep, read } from '../tools/reading.js'
import type { Tool } from '../tools/tool.js'
import { systemPrompt } from '../workspace/instructions.js'
import { compacted, isNearLimit } from './compaction.js'
import {
  assistantMessage,
  assistantText,
  boundedInput,
  charactersOf,
  imagesOf,
  mended,
  type PromptImage,
  tokensOfText,
  toolMessage,
  userMessage,
  withImages,
} from './messages.js'
import type { Session } from './session.js'
import { ToolRunner } from './tool-runner.js'

const TOOLS: readonly Tool[] = [read, grep, glob, edit, write, run, plan]

/** Model answers in one turn. */
const MAX_ANSWERS = 100
/**
 * Identical calls with identical results and no change between them: at the first limit the model is warned, at the second the turn
 * ends.
 */
const REPEATS_TOLD = 3
const MAX_REPEATS = 6
/** Consecutive calls that could not be carried out. */
const MAX_REFUSED = 10
const MAX_OUTPUT = 48_000
const MIN_OUTPUT = 2000
/** Base64 characters of images in a conversation; older images are dropped. */
const MAX_IMAGES = 8_000_000
/** How endpoints report that a model takes no images. */
const NO_IMAGES = /image|multi-?modal|vision|mmproj|must be a string/i
const CANCELLED = 'cancelled by the person'

/** The text and images of a prompt. */
export interface Prompt {
  readonly text: string
  readonly images: readonly PromptImage[]
}

/** The environment of a turn. */
export interface TurnContext {
  readonly client: AgentContext
  readonly capabilities: ClientCapabilities
  readonly endpoint: Endpoint
  readonly controller: AbortController
  /** Stores the conversation in its current state. */
  save(): void
}

/** One prompt and all answers and calls that follow from it. */
export class Turn {
  readonly #repeats = new Map<string, number>()
  #refusedInRow = 0

  constructor(
    private readonly context: TurnContext,
    private readonly session: Session,
  ) {}

  /** Rejects with {@link EndpointFailure} or the reason of the signal. The conversation stays valid in every case. */
  async run({ text, images }: Prompt): Promise<StopReason> {
    const { session, context } = this
    session.messages = withImages([...session.messages, userMessage(text, images)], MAX_IMAGES)
    context.save()
    try {
      return await this.#answerAll()
    } catch (error) {
      if (error instanceof BrokenAnswer) {
        if (error.text !== '') session.messages.push(assistantText(error.text))
        throw error.failure
      }
      throw error
    } finally {
      const isCancelled = context.controller.signal.aborted
      session.messages = mended(session.messages, isCancelled ? CANCELLED : undefined)
      // Without an answer the model would continue the cancelled prompt together with the next.
      if (isCancelled && session.messages.at(-1)?.role === 'user')
        session.messages.push(assistantText(`[${CANCELLED}]`))
      context.save()
    }
  }

  async #answerAll(): Promise<StopReason> {
    const { session, context } = this
    const { endpoint, controller } = context
    const { signal } = controller
    const { tools: foreign, missing } = await abortable(session.mcp.opened(), signal)
    const tools = new Map([...TOOLS, ...foreign].map(tool => [tool.name, tool]))
    const offered: ToolSet = Object.fromEntries(
      [...tools.values()].map(({ name, description, parameters }) => [
        name,
        toolOf({ description, inputSchema: jsonSchema(parameters) }),
      ]),
    )
    const model = await endpoint.modelName(session.model)
    const window = await endpoint.window(model)
    const maxOutput = Math.max(MIN_OUTPUT, Math.min(MAX_OUTPUT, window))
    const system = await systemPrompt(session.roots, session.mode, missing, Math.min(32_000, window))
    const before = tokensOfText(system.length + JSON.stringify([...tools.values()].map(each => each.parameters)).length)
    const runner = new ToolRunner(context.client, context.capabilities, session, controller, maxOutput)
    let isCompacted = false

    for (let answers = 0; answers < MAX_ANSWERS; answers++) {
      signal.throwIfAborted()
      if (isNearLimit(session.messages, before, session.counted, window)) await this.#compact(model, window)
      let answer: Answer
      try {
        answer = await callModel({
          endpoint,
          model,
          system,
          messages: withImages(mended(session.messages), session.blind ? 0 : MAX_IMAGES),
          tools: offered,
          signal,
          text: delta => this.#say(delta),
          thought: delta => this.#think(delta),
          waits: text => this.#think(text),
        })
      } catch (error) {
        if (await this.#sees(error, model)) continue
        const isTooLong = error instanceof EndpointFailure && error.problem === 'context_too_long'
        if (!isTooLong || isCompacted) throw error
        // The window is smaller than assumed. Compacts only once, because a second compaction would not help.
        isCompacted = true
        await this.#compact(model, Math.min(window, Math.ceil(tokensUsed(session, before) / 2)))
        continue
      }
      const calls = answer.calls.map((call, at) => ({ ...call, id: `call-${session.turns}-${answers + 1}-${at + 1}` }))
      const kept = calls.map(call => ({ ...call, input: boundedInput(call.input, maxOutput) }))
      session.messages.push(assistantMessage(answer.text, kept))
      session.counted = answer.tokens ?? 0
      await this.#tellUsage(tokensUsed(session, before), window)
      context.save()
      if (calls.length === 0) return await this.#endOf(answer)
      for (const call of calls) {
        const stop = await this.#carryOut(runner, tools.get(call.name), call)
        context.save()
        if (stop !== undefined) {
          await this.#say(`\n\n${stop}`)
          session.messages = [...mended(session.messages), assistantText(stop)]
          return 'max_turn_requests'
        }
      }
      session.counted = 0
    }
    const text = `I stopped after ${MAX_ANSWERS} steps. Send another prompt to go on.`
    await this.#say(`\n\n${text}`)
    session.messages.push(assistantText(text))
    return 'max_turn_requests'
  }

  /** Whether the endpoint refused the images. If so, this session sends notes instead of images from now on. */
  async #sees(error: unknown, model: string): Promise<boolean> {
    const { session } = this
    if (session.blind || !(error instanceof EndpointFailure) || !session.messages.some(m => imagesOf(m).length > 0))
      return false
    if (!['refused', 'broken'].includes(error.problem) || !NO_IMAGES.test(error.message)) return false
    session.blind = true
    await this.#say(
      `[the model ${model} does not support images; it gets the prompt without them: ${error.message}]\n\n`,
    )
    return true
  }

  /**
   * Runs one call and keeps its result.
   * @returns Why the turn must end, if it must.
   */
  async #carryOut(runner: ToolRunner, tool: Tool | undefined, call: WantedCall): Promise<string | undefined> {
    const result = await runner.run(tool, call)
    if (result.changed) this.#repeats.clear()
    const key = digest(call.name, JSON.stringify(call.input) ?? '', result.text)
    const times = (this.#repeats.get(key) ?? 0) + 1
    this.#repeats.set(key, times)
    this.#refusedInRow = result.refused ? this.#refusedInRow + 1 : 0
    const note = times >= REPEATS_TOLD ? `\n[the same call gave the same result ${times} times; do something else]` : ''
    this.session.messages.push(toolMessage(call, result.text + note))
    if (times >= MAX_REPEATS) return `I stopped: the model repeats the call of ${call.name} with the same result.`
    if (this.#refusedInRow >= MAX_REFUSED) return `I stopped: ${MAX_REFUSED} calls in a row could not be executed.`
    return undefined
  }

  async #endOf(answer: Answer): Promise<StopReason> {
    switch (answer.finish) {
      case 'length':
        await this.#say('\n\n[the answer was cut off at the output limit of the model]')
        return 'max_tokens'
      case 'filtered':
        await this.#say('\n\n[the endpoint filtered the answer]')
        return 'refusal'
      default:
        if (answer.text.trim() === '') await this.#say('[the model answered with nothing]')
        return 'end_turn'
    }
  }

  async #compact(model: string, window: number): Promise<void> {
    const { session, context } = this
    await this.#think('The conversation is near the limit of the model; its older part becomes a summary.\n')
    const { signal } = context.controller
    session.messages = await compacted(mended(session.messages), { endpoint: context.endpoint, model, window, signal })
    session.counted = 0
    context.save()
  }

  #say(text: string): Promise<void> {
    return this.#notify('agent_message_chunk', text)
  }

  #think(text: string): Promise<void> {
    return this.#notify('agent_thought_chunk', text)
  }

  #notify(sessionUpdate: 'agent_message_chunk' | 'agent_thought_chunk', text: string): Promise<void> {
    const update = { sessionUpdate, content: { type: 'text' as const, text } }
    return this.context.client.notify(methods.client.session.update, { sessionId: this.session.id, update })
  }

  #tellUsage(used: number, size: number): Promise<void> {
    const update = { sessionUpdate: 'usage_update' as const, used, size }
    return this.context.client.notify(methods.client.session.update, { sessionId: this.session.id, update })
  }
}

const tokensUsed = ({ messages, counted }: Session, before: number) =>
  counted > 0 ? counted : before + tokensOfText(charactersOf(messages))

const digest = (...texts: readonly string[]) => createHash('sha256').update(JSON.stringify(texts)).digest('base64')

/** Settles like `work`, or rejects with the signal's reason once it aborts. */
function abortable<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const aborted = new Promise<never>((_, reject) => {
    if (signal.aborted) reject(signal.reason)
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })
  return Promise.race([work, aborted])
}
