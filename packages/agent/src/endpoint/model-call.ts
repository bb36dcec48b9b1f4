import { setTimeout as sleep } from 'node:timers/promises'
import { type ModelMessage, streamText, type ToolSet } from 'ai'
import { clip } from '../text.js'
import type { Endpoint } from './endpoint.js'
import { EndpointFailure, failureOf, MAX_WAIT_MS, PASSING } from './failures.js'
import type { ReadProgress } from './guarded-fetch.js'
import { type Split, ThoughtTags } from './thought-tags.js'

/** Maximum characters of one answer; the rest is cut off. */
const MAX_TEXT = 400_000
const MAX_THOUGHTS = 400_000
const MAX_ARGUMENTS = 2_000_000
const MAX_CALLS = 64
const MAX_TRIES = 3
const FIRST_PAUSE_MS = 500

/** A tool call requested by the model. */
export interface WantedCall {
  readonly id: string
  readonly name: string
  /** Parsed arguments; with `problem`, as much as could be parsed. */
  readonly input: unknown
  /** Why the call cannot run, such as an unknown tool or invalid JSON. For the model. */
  readonly problem?: string
}

/** One answer of the model, as far as it was received. */
export interface Answer {
  readonly text: string
  readonly calls: readonly WantedCall[]
  readonly finish: 'stop' | 'tools' | 'length' | 'filtered'
  /** Tokens of the request and the answer, if the endpoint reports them. */
  readonly tokens: number | undefined
}

/** The answer broke off or was cancelled; the text received so far is kept. */
export class BrokenAnswer extends Error {
  override readonly name = 'BrokenAnswer'
  constructor(
    /** An {@link EndpointFailure}, or the reason of the signal. */
    readonly failure: Error,
    readonly text: string,
  ) {
    super(failure.message)
  }
}

export interface CallRequest {
  readonly endpoint: Endpoint
  readonly model: string
  readonly system: string
  readonly messages: readonly ModelMessage[]
  readonly tools: ToolSet
  readonly maxTokens?: number
  readonly signal: AbortSignal
  text(delta: string): Promise<void>
  thought(delta: string): Promise<void>
  /** Reports the pause before a retry. */
  waits(text: string): Promise<void>
}

/**
 * Streams one answer of the model. Retries passing failures while nothing was shown yet.
 * @throws {EndpointFailure}
 * @throws {BrokenAnswer} If text had been received.
 * @throws The reason of the signal.
 */
export async function callModel(request: CallRequest): Promise<Answer> {
  for (let tries = 1; ; tries++) {
    try {
      return await callOnce(request)
    } catch (error) {
      if (!(error instanceof EndpointFailure)) throw error
      request.signal.throwIfAborted()
      const pause = error.waitMs ?? FIRST_PAUSE_MS * 4 ** (tries - 1)
      if (tries >= MAX_TRIES || !PASSING.has(error.problem) || pause > MAX_WAIT_MS) throw error
      if (error.problem === 'rate_limited') await request.waits(`${error.message} (waiting)\n`)
      await sleep(pause, undefined, { signal: request.signal })
    }
  }
}

async function callOnce(request: CallRequest): Promise<Answer> {
  const { endpoint, model, signal } = request
  const progress: ReadProgress = { bytes: 0 }
  const cut = new AbortController()
  let text = ''
  let thoughts = 0
  let argumentsSeen = 0
  const tags = new ThoughtTags()
  const take = async (part: Split) => {
    thoughts += part.thought.length
    if (thoughts > MAX_THOUGHTS) throw tooMuch(`more than ${MAX_THOUGHTS} characters of thoughts`)
    text += part.text
    if (text.length > MAX_TEXT) throw tooMuch(`more than ${MAX_TEXT} characters of text`)
    if (part.thought !== '') await request.thought(part.thought)
    if (part.text !== '') await request.text(part.text)
  }
  const calls: WantedCall[] = []
  let answer: Answer | undefined
  try {
    const { fullStream } = streamText({
      model: endpoint.model(model, progress),
      system: request.system,
      messages: [...request.messages],
      tools: request.tools,
      maxRetries: 0,
      abortSignal: AbortSignal.any([signal, cut.signal]),
      onError: () => {},
      ...(request.maxTokens !== undefined && { maxOutputTokens: request.maxTokens }),
    })
    for await (const part of fullStream) {
      signal.throwIfAborted()
      switch (part.type) {
        case 'text-delta':
          await take(tags.take(part.text))
          break
        case 'reasoning-delta':
          await take({ thought: part.text, text: '' })
          break
        case 'tool-input-delta':
          argumentsSeen += part.delta.length
          if (argumentsSeen > MAX_ARGUMENTS) throw tooMuch(`more than ${MAX_ARGUMENTS} characters of arguments`)
          break
        case 'tool-call':
          if (calls.length >= MAX_CALLS) throw tooMuch(`more than ${MAX_CALLS} tool calls`)
          calls.push(wantedOf(part, request.tools))
          break
        case 'error':
          throw part.error
        case 'abort':
          throw signal.aborted ? signal.reason : new Error('the call was given up')
        case 'finish-step':
          await take(tags.end())
          answer = {
            text,
            calls,
            ...endOf(part.rawFinishReason, part.finishReason, calls),
            tokens: tokensOf(part.usage),
          }
          // Without a finish reason the stream was cut on its way.
          if (part.rawFinishReason === undefined) throw dropped(endpoint.failureContext(model).baseUrl, progress)
          break
      }
    }
    signal.throwIfAborted()
    if (!answer) throw dropped(endpoint.failureContext(model).baseUrl, progress)
    return answer
  } catch (error) {
    const context = endpoint.failureContext(model)
    const failure = signal.aborted
      ? (signal.reason as Error)
      : isTerminated(error)
        ? dropped(context.baseUrl, progress)
        : failureOf(error, context)
    throw text === '' && thoughts === 0 ? failure : new BrokenAnswer(failure, text)
  } finally {
    // Closes the stream of an answer that is not read to its end.
    cut.abort()
  }
}

type ToolCallPart = {
  readonly toolCallId: string
  readonly toolName: string
  readonly input: unknown
  readonly invalid?: boolean | undefined
}

function wantedOf({ toolCallId, toolName, input, invalid }: ToolCallPart, tools: ToolSet): WantedCall {
  const call = { id: clip(toolCallId, 200), name: clip(toolName, 128), input }
  if (!Object.hasOwn(tools, toolName)) {
    const known = Object.keys(tools).slice(0, 50).join(', ')
    return { ...call, problem: `unknown tool ${JSON.stringify(call.name)}; available tools: ${known}` }
  }
  if (invalid || typeof input !== 'object' || input === null || Array.isArray(input)) {
    return { ...call, problem: 'the arguments are not a JSON object; send them again as a JSON object' }
  }
  return call
}

function endOf(raw: string | undefined, finish: string, calls: readonly WantedCall[]): Pick<Answer, 'finish'> {
  if (calls.length > 0) return { finish: 'tools' }
  if (finish === 'length' || raw === 'length') return { finish: 'length' }
  return { finish: finish === 'content-filter' ? 'filtered' : 'stop' }
}

function tokensOf({
  inputTokens = 0,
  outputTokens = 0,
}: {
  inputTokens?: number | undefined
  outputTokens?: number | undefined
}) {
  const sum = inputTokens + outputTokens
  return Number.isFinite(sum) && sum > 0 ? sum : undefined
}

const tooMuch = (what: string) => new EndpointFailure('too_much', `the model sent ${what} in one answer; it was cut`)

const dropped = (baseUrl: string, { bytes }: ReadProgress) =>
  new EndpointFailure(
    'dropped',
    bytes === 0
      ? `the endpoint ${baseUrl} closed the connection without an answer`
      : `the stream from ${baseUrl} was dropped before the answer was complete; send the prompt again`,
  )

/** Whether Node's fetch or the SDK reports an answer cut in the middle. */
function isTerminated(error: unknown): boolean {
  for (let at: unknown = error, deep = 0; at instanceof Error && deep < 5; at = at.cause, deep++) {
    if (
      /^terminated$|without a finish reason/.test(at.message) ||
      (at as NodeJS.ErrnoException).code === 'UND_ERR_SOCKET'
    )
      return true
  }
  return false
}
