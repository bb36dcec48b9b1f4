/*
 * Normalises streaming chat completions. Ollama, llama.cpp, vLLM, SGLang and the proxies in front of them deviate in small ways,
 * each of which would make the SDK fail the answer.
 */

type Json = Record<string, unknown>

const isObject = (value: unknown): value is Json => typeof value === 'object' && value !== null && !Array.isArray(value)
const objectsIn = (value: unknown): Json[] => (Array.isArray(value) ? value.filter(isObject) : [])
const textIn = (value: unknown) => (typeof value === 'string' ? value : '')

/** A tool call as received so far. */
interface OpenCall {
  readonly id: string
  /** The server's id of the call; it may not be unique. */
  readonly toldId: string
  readonly index: number
  /** The server's index of the call. */
  readonly serverIndex: unknown
  arguments: string
}

/** Normalises the events of one answer. */
class Answer {
  readonly #calls: OpenCall[] = []
  #hasContent = false
  #hasEnded = false

  /** The data of an event in the common form; unparsable data is passed through. */
  data(text: string): string {
    if (text === '[DONE]') return this.#done()
    let value: unknown
    try {
      value = JSON.parse(text)
    } catch {
      return text
    }
    if (!isObject(value)) return text
    // The SDK rejects an answer with invalid usage figures.
    if (value.usage !== undefined && !(isObject(value.usage) && Object.values(value.usage).some(Number.isFinite)))
      delete value.usage
    // An event without choices, such as one that only reports usage.
    if (value.choices === null) value.choices = []
    for (const choice of objectsIn(value.choices)) this.#mend(choice)
    return JSON.stringify(value)
  }

  #mend(choice: Json): void {
    // Some servers send the whole message instead of deltas; others send an empty finish reason until the last event.
    if (choice.delta === undefined && isObject(choice.message)) choice.delta = choice.message
    if (choice.finish_reason === '') choice.finish_reason = null
    if (choice.finish_reason) this.#hasEnded = true
    const { delta } = choice
    if (!isObject(delta)) return
    if (delta.content || delta.reasoning || delta.reasoning_content) this.#hasContent = true
    if (delta.role !== undefined) delta.role = 'assistant'
    if (delta.tool_calls !== undefined) delta.tool_calls = objectsIn(delta.tool_calls).map(call => this.#callOf(call))
  }

  /** Assigns one id and one index to each call: servers omit them, repeat them, or use one index for all calls. */
  #callOf({ id, index, function: functionPart, ...rest }: Json): Json {
    const said = isObject(functionPart) ? functionPart : rest
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
    const call = { id: isFree ? toldId : `call-${at}`, toldId, index: at, serverIndex: index, arguments: args }
    this.#calls.push(call)
    return { index: at, id: call.id, type: 'function', function: { name, arguments: args } }
  }

  /** The open call that a piece continues; undefined for a new call. */
  #known(id: string, index: unknown, name: string): OpenCall | undefined {
    const isSame = (call: OpenCall) => call.toldId === id && (typeof index !== 'number' || call.serverIndex === index)
    const same = id === '' ? undefined : this.#calls.findLast(isSame)
    if (same) return same
    const last =
      typeof index === 'number' ? this.#calls.findLast(call => call.serverIndex === index) : this.#calls.at(-1)
    if (!last || name === '') return last
    // A name begins a new call, unless the server repeats the name in each piece.
    return id === '' && typeof index === 'number' && !isWhole(last.arguments) ? last : undefined
  }

  /** Adds a finish reason to a stream that ended properly but without one. */
  #done(): string {
    if (this.#hasEnded || !this.#hasContent) return '[DONE]'
    const end = { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }
    return `${JSON.stringify(end)}\n\ndata: [DONE]`
  }
}

function isWhole(json: string): boolean {
  // A cheap check first: most partial JSON does not end with a brace and need not be parsed.
  if (!json.endsWith('}')) return false
  try {
    JSON.parse(json)
    return true
  } catch {
    return false
  }
}

/** Converts the events of a stream to the common form. Keep-alive comments are dropped. */
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
    // llama.cpp has sent errors in an `error:` field.
    const [, field, value = ''] = /^(data|error): ?(.*)$/s.exec(text) ?? []
    if (field === 'data') data.push(value)
    if (field === 'error')
      return `${event()}data: {"error":${isWhole(value) ? value : JSON.stringify({ message: value })}}\n\n`
    return ''
  }
  const lines = (text: string, isLast: boolean) => {
    // A line of megabytes arrives in many pieces. Each piece is searched for a line end once, so the scan stays linear.
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

/** The stream form of a whole answer that was sent instead of a stream; undefined for any other text. */
export function streamOfWhole(text: string): string | undefined {
  try {
    const value: unknown = JSON.parse(text)
    if (!isObject(value) || !objectsIn(value.choices).some(({ message }) => isObject(message))) return undefined
    return `data: ${JSON.stringify(value)}\n\ndata: [DONE]\n\n`
  } catch {
    return undefined
  }
}
