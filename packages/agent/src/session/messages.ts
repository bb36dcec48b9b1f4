import type { ModelMessage } from 'ai'
import { clip, headAndTail } from '../text.js'

type Part = Exclude<ModelMessage['content'], string>[number]

/** Approximate tokens of a text; the estimate is conservative because models differ. */
export const tokensOfText = (characters: number) => Math.ceil(characters / 3.5)

/** An image counts as a fixed number of characters: endpoints derive its tokens from pixels, not bytes. */
const IMAGE_CHARACTERS = 'x'.repeat(5000)

/** Characters of messages as JSON, with a fixed count for each image. */
export const charactersOf = (value: unknown): number =>
  JSON.stringify(value, function (this: { type?: unknown }, key, inner) {
    return key === 'image' && this.type === 'image' ? IMAGE_CHARACTERS : inner
  }).length

/** Approximate tokens of messages. */
export const tokensOf = (messages: readonly ModelMessage[]) =>
  messages.reduce((sum, message) => sum + tokensOfText(charactersOf(message.content)) + 8, 0)

/** An image of a prompt: base64 and media type. */
export interface PromptImage {
  readonly data: string
  readonly mediaType: string
}

export const userMessage = (text: string, images: readonly PromptImage[] = []): ModelMessage => ({
  role: 'user',
  content:
    images.length === 0
      ? text
      : [
          { type: 'text', text },
          ...images.map(({ data, mediaType }) => ({ type: 'image' as const, image: data, mediaType })),
        ],
})

export const assistantText = (text: string): ModelMessage => ({ role: 'assistant', content: [{ type: 'text', text }] })

/** A call as later requests repeat it. */
export interface KeptCall {
  readonly id: string
  readonly name: string
  readonly input: unknown
}

export function assistantMessage(text: string, calls: readonly KeptCall[]): ModelMessage {
  return {
    role: 'assistant',
    content: [
      ...(text === '' ? [] : [{ type: 'text' as const, text }]),
      ...calls.map(({ id, name, input }) => ({
        type: 'tool-call' as const,
        toolCallId: id,
        // Endpoints refuse a conversation that contains an invalid name or arguments.
        toolName: clip(name.replace(/[^\w-]/g, '_'), 64) || 'unknown',
        input: typeof input === 'object' && input !== null && !Array.isArray(input) ? input : {},
      })),
    ],
  }
}

export const toolMessage = ({ id, name }: KeptCall, text: string): ModelMessage => ({
  role: 'tool',
  content: [
    {
      type: 'tool-result',
      toolCallId: id,
      toolName: clip(name.replace(/[^\w-]/g, '_'), 64) || 'unknown',
      output: { type: 'text', value: text },
    },
  ],
})

/** Shortened arguments for the history: later requests need not repeat the text of a written file. */
export function boundedInput(input: unknown, max: number): unknown {
  if (typeof input !== 'object' || input === null || JSON.stringify(input).length <= max) return input
  return Object.fromEntries(
    Object.entries(input)
      .slice(0, 50)
      .map(([name, value]) => [
        name,
        typeof value === 'string' ? headAndTail(value, Math.floor(max / 4)) : bounded(value, max),
      ]),
  )
}

const bounded = (value: unknown, max: number) => (JSON.stringify(value)?.length > max / 4 ? '[left out]' : value)

const partsOf = (message: ModelMessage): readonly Part[] => (typeof message.content === 'string' ? [] : message.content)

/** The text of a message, without its calls. */
export const textOf = (message: ModelMessage): string =>
  typeof message.content === 'string'
    ? message.content
    : message.content.flatMap(part => (part.type === 'text' ? [part.text] : [])).join('')

/** The images of a message, in order. */
export const imagesOf = (message: ModelMessage): readonly PromptImage[] =>
  partsOf(message).flatMap(part =>
    part.type === 'image' && typeof part.image === 'string'
      ? [{ data: part.image, mediaType: part.mediaType ?? 'image/png' }]
      : [],
  )

/** The same messages with only the newest images, up to `max` base64 characters in all; a note replaces each older image. */
export function withImages(messages: readonly ModelMessage[], max: number): ModelMessage[] {
  let left = max
  return messages
    .toReversed()
    .map(message => {
      const images = imagesOf(message)
      if (images.length === 0) return message
      const kept = images.filter(({ data }) => {
        left -= data.length
        return left >= 0
      })
      const gone = images.length - kept.length
      const note = gone === 0 ? '' : `\n[${gone} ${gone === 1 ? 'image' : 'images'} left out; you cannot see them]`
      return userMessage(textOf(message) + note, kept)
    })
    .reverse()
}

export const callsOf = (message: ModelMessage) =>
  partsOf(message).flatMap(part => (part.type === 'tool-call' ? [part] : []))

export const resultsOf = (message: ModelMessage) =>
  partsOf(message).flatMap(part =>
    part.type === 'tool-result' && part.output.type === 'text'
      ? [{ id: part.toolCallId, text: part.output.value }]
      : [],
  )

/**
 * Messages that endpoints accept: every call has a result, even if the process ended before it; no result lacks its call; no two
 * user messages follow each other.
 */
export function mended(messages: readonly ModelMessage[], lost = 'not executed: the turn ended first'): ModelMessage[] {
  const result: ModelMessage[] = []
  let open: KeptCall[] = []
  const close = () => {
    for (const call of open) result.push(toolMessage(call, lost))
    open = []
  }
  for (const message of messages) {
    if (message.role === 'tool') {
      const [answer] = resultsOf(message)
      if (!answer || !open.some(({ id }) => id === answer.id)) continue
      open = open.filter(({ id }) => id !== answer.id)
      result.push(message)
      continue
    }
    close()
    const last = result.at(-1)
    if (message.role === 'user' && last?.role === 'user') {
      result[result.length - 1] = userMessage(`${textOf(last)}\n\n${textOf(message)}`, [
        ...imagesOf(last),
        ...imagesOf(message),
      ])
      continue
    }
    // Some endpoints refuse an assistant message without text and calls.
    if (message.role === 'assistant' && textOf(message) === '' && callsOf(message).length === 0) continue
    result.push(message)
    open = callsOf(message).map(({ toolCallId, toolName, input }) => ({ id: toolCallId, name: toolName, input }))
  }
  close()
  return result
}
