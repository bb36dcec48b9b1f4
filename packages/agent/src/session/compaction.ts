import type { ModelMessage } from 'ai'
import type { Endpoint } from '../endpoint/endpoint.js'
import { callModel } from '../endpoint/model-call.js'
import { headAndTail, shortened } from '../text.js'
import { callsOf, imagesOf, resultsOf, textOf, tokensOf, userMessage } from './messages.js'

/** Fractions of the window: compaction starts at FULL, and the newest KEPT stays verbatim. */
const FULL = 0.75
const KEPT = 0.25
const CHARACTERS_A_TOKEN = 3
const SHORT_RESULT = 300
const TASK = `Summarise the conversation of a coding agent with a person so that the agent can go on with nothing but your summary.
Say what the person wants, in their words where they matter; what was found out and decided; which files were read and changed, and how; which commands ran and how they ended; what is left to do. Write no more than a page.`

/** Whether a conversation, with the system prompt, is near the limit of the window. */
export const isNearLimit = (messages: readonly ModelMessage[], before: number, counted: number, window: number) =>
  Math.max(tokensOf(messages) + before, counted) > window * FULL

/**
 * A shorter conversation: the old part becomes a summary by the model, or a mechanical one if the model gives none; the newest part
 * stays verbatim. Rejects only with the reason of the signal.
 */
export async function compacted(
  messages: readonly ModelMessage[],
  { endpoint, model, window, signal }: { endpoint: Endpoint; model: string; window: number; signal: AbortSignal },
): Promise<ModelMessage[]> {
  const cut = cutOf(messages, window * KEPT)
  const old = messages.slice(0, cut)
  const kept = messages.slice(cut)
  if (old.length === 0) return withShortResults(kept)
  const excerpt = headAndTail(old.map(rendered).join('\n\n'), Math.floor(window * CHARACTERS_A_TOKEN * 0.6))
  const summary = await callModel({
    endpoint,
    model,
    system: TASK,
    messages: [userMessage(`${excerpt}\n\nSummarise this now.`)],
    tools: {},
    maxTokens: Math.max(256, Math.floor(window / 8)),
    signal,
    text: async () => {},
    thought: async () => {},
    waits: async () => {},
  })
    .then(({ text }) => text.trim())
    .catch(() => {
      signal.throwIfAborted()
      return ''
    })
  const text = shortened(summary || mechanical(old), Math.floor(window * CHARACTERS_A_TOKEN * 0.2))
  const head = userMessage(`[Summary of the conversation so far]\n${text}\n[End of the summary]`)
  const result = [head, ...kept]
  return tokensOf(result) > window * FULL ? withShortResults(result) : result
}

/** The index where the verbatim part begins, never between a call and its result. */
function cutOf(messages: readonly ModelMessage[], tokens: number): number {
  let at = messages.length
  let sum = 0
  while (at > 0) {
    sum += tokensOf(messages.slice(at - 1, at))
    if (sum > tokens) break
    at--
  }
  // Keeps at least the last answer of the model and the results of its calls.
  at = Math.min(
    at,
    Math.max(
      0,
      messages.findLastIndex(({ role }) => role !== 'tool'),
    ),
  )
  while (at > 0 && messages[at]?.role === 'tool') at--
  return at
}

/** Shortens all tool results but the newest. */
function withShortResults(messages: readonly ModelMessage[]): ModelMessage[] {
  const newest = messages.findLastIndex(({ role }) => role === 'assistant')
  return messages.map((message, at) => {
    if (message.role !== 'tool' || at > newest) return message
    return {
      ...message,
      content: message.content.map(part =>
        part.type === 'tool-result' && part.output.type === 'text'
          ? { ...part, output: { type: 'text' as const, value: shortened(part.output.value, SHORT_RESULT) } }
          : part,
      ),
    }
  })
}

function rendered(message: ModelMessage): string {
  const lines = [`${message.role}: ${shortened(textOf(message), 4000)}`]
  const images = imagesOf(message).length
  if (images > 0) lines.push(`[with ${images} ${images === 1 ? 'image' : 'images'}]`)
  for (const { toolName, input } of callsOf(message))
    lines.push(`calls ${toolName} ${shortened(JSON.stringify(input), 600)}`)
  for (const { text } of resultsOf(message)) lines.push(`result: ${headAndTail(text, 1200)}`)
  return lines.join('\n')
}

/** A mechanical summary, for a model that gives none: the person's messages and the calls made. */
function mechanical(messages: readonly ModelMessage[]): string {
  return messages
    .flatMap(message => {
      if (message.role === 'user') return [`The person: ${shortened(textOf(message), 1000)}`]
      return callsOf(message).map(
        ({ toolName, input }) => `Called ${toolName} ${shortened(JSON.stringify(input), 150)}`,
      )
    })
    .join('\n')
}
