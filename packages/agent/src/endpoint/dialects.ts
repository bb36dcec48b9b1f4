/*
 * What servers make of the streaming chat completions, brought to the one form that is read behind this: Ollama, llama.cpp,
 * vLLM, SGLang and the proxies before them differ in small things, each of which would end an answer.
 */

type Json = Record<string, unknown>

const isObject = (value: unknown): value is Json => typeof value === 'object' && value !== null && !Array.isArray(value)
const objectsIn = (value: unknown): Json[] => (Array.isArray(value) ? value.filter(isObject) : [])
const textIn = (value: unknown) => (typeof value === 'string' ? value : '')

/** A call of a tool, as far as it has come. */
interface OpenCall {
  readonly id: string
  /** The id that the server has for it; several may have the same. */
  readonly toldId: string
  readonly index: number
  /** The index that the server has for it. */
  readonly told: unknown
  arguments: string
}

/** Reads the events of one answer. */
class Answer {
  readonly #calls: OpenCall[] = []
  #hasContent = false
  #hasEnded = false

  /** The data of an event in the common form; itself where it cannot be read. */
  data(text: string): string {
    if (text === '[DONE]') return this.#done()
    let value: unknown
    try {
      value = JSON.parse(text)
    } catch {
      return text
    }
    if (!isObject(value)) return text
    // A count that is none would spoil the answer that it came with.
    if (value.usage !== undefined && !(isObject(value.usage) && Object.values(value.usage).some(Number.isFinite)))
      delete value.usage
    // An event without a choice, as one that only counts tokens.
    if (value.choices === null) value.choices = []
    for (const choice of objectsIn(value.choices)) this.#mend(choice)
    return JSON.stringify(value)
  }

  #mend(choice: Json): void {
    // Some answer whole, others write an empty reason until there is one.
    if (choice.delta === undefined && isObject(choice.message)) choice.delta = choice.message
    if (choice.finish_reason === '') choice.finish_reason = null
    if (choice.finish_reason) this.#hasEnded = true
    const { delta } = choice
    if (!isObject(delta)) return
    if (delta.content || delta.reasoning || delta.reasoning_content) this.#hasContent = true
    if (delta.role !== undefined) delta.role = 'assistant'
    if (delta.tool_calls !== undefined) delta.tool_calls = objectsIn(delta.tool_calls).map(call => this.#callOf(call))
  }

  /** One id and one index for each call: servers leave them out, repeat them, or have the same index for all. */
  #callOf({ id, index, function: told, ...rest }: Json): Json {
    const said = isObject(told) ? told : rest
    const name = textIn(said.name)
    const args =
      said.arguments === null || said.arguments === undefined
        ? ''
        : typeof said.arguments === 'string'
          ? said.arguments
          : JSON.stringify(said.arguments)
    this.#hasContent = true
    const known = this.#known(textIn(id), index, name)
    if (known) {
      known.arguments += args
      return { index: known.index, id: known.id, type: 'function', function: { arguments: args } }
    }
    const at = this.#calls.length
    const toldId = textIn(id)
    const isFree = toldId !== '' && !this.#calls.some(call => call.id === toldId)
    const call = { id: isFree ? toldId : `call-${at}`, toldId, index: at, told: index, arguments: args }
    this.#calls.push(call)
    return { index: at, id: call.id, type: 'function', function: { name, arguments: args } }
  }

  /** The call that a piece goes on with; undefined for a new one. */
  #known(id: string, index: unknown, name: string): OpenCall | undefined {
    const isSame = (call: OpenCall) => call.toldId === id && (typeof index !== 'number' || call.told === index)
    const same = id === '' ? undefined : this.#calls.findLast(isSame)
    if (same) return same
    const last = typeof index === 'number' ? this.#calls.findLast(call => call.told === index) : this.#calls.at(-1)
    if (!last || name === '') return last
    // A name says that a call begins, unless the server says it with each piece of one.
    return id === '' && typeof index === 'number' && !isWhole(last.arguments) ? last : undefined
  }

  /** The end of a stream whose server gave no reason for it, though it came to its end. */
  #done(): string {
    if (this.#hasEnded || !this.#hasContent) return '[DONE]'
    const end = { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }
    return `${JSON.stringify(end)}\n\ndata: [DONE]`
  }
}

function isWhole(json: string): boolean {
  // Most pieces of one are told from it without a look at all of it.
  if (!json.endsWith('}')) return false
  try {
    JSON.parse(json)
    return true
  } catch {
    return false
  }
}

/** Events of a stream in the common form. Comments that keep it alive are left out. */
export function commonForm(): TransformStream<Uint8Array, Uint8Array> {
  const answer = new Answer()
  const decoder = new TextDecoder()
  const encoder = new TextEncoder()
  let rest = ''
  let data: string[] = []
  const event = () => {
    const text = data.join('\n')
    data = []
    return text === '' ? '' : `data: ${answer.data(text)}\n\n`
  }
  const line = (text: string): string => {
    if (text === '') return event()
    // llama.cpp has written errors as a field of their own.
    const [, field, value = ''] = /^(data|error): ?(.*)$/s.exec(text) ?? []
    if (field === 'data') data.push(value)
    if (field === 'error')
      return `${event()}data: {"error":${isWhole(value) ? value : JSON.stringify({ message: value })}}\n\n`
    return ''
  }
  const lines = (text: string, isLast: boolean) => {
    // A line of megabytes comes in many pieces, and is looked through once.
    if (!isLast && !/[\r\n]/.test(text) && !rest.endsWith('\r')) {
      rest += text
      return ''
    }
    const all = (rest + text).split(/\r\n|\n|\r(?!$)/)
    rest = isLast ? '' : (all.pop() ?? '')
    return all.map(line).join('') + (isLast ? event() : '')
  }
  const enqueue = (controller: TransformStreamDefaultController<Uint8Array>, text: string) => {
    if (text !== '') controller.enqueue(encoder.encode(text))
  }
  return new TransformStream({
    transform: (chunk, controller) => enqueue(controller, lines(decoder.decode(chunk, { stream: true }), false)),
    flush: controller => enqueue(controller, lines(decoder.decode(), true)),
  })
}

/** A whole answer, where a stream was asked for, as the stream of it; undefined for what is no answer. */
export function streamOfWhole(text: string): string | undefined {
  try {
    const value: unknown = JSON.parse(text)
    if (!isObject(value) || !objectsIn(value.choices).some(({ message }) => isObject(message))) return undefined
    return `data: ${JSON.stringify(value)}\n\ndata: [DONE]\n\n`
  } catch {
    return undefined
  }
}
