/** One server-sent event. */
export interface Frame {
  readonly id?: string
  readonly event: string
  readonly data: unknown
}

/** Reads a `text/event-stream` until it ends. `fetch` is used instead of `EventSource`, which cannot send the header of the session. */
export async function* readFrames(body: ReadableStream<Uint8Array>): AsyncGenerator<Frame> {
  const reader = body.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>).getReader()
  let rest = ''
  let block: string[] = []
  for (;;) {
    const { value, done } = await reader.read()
    if (done) return
    const lines = (rest + value).split(/\r\n|\n|\r/)
    rest = lines.pop() ?? ''
    for (const line of lines) {
      if (line !== '') {
        block.push(line)
        continue
      }
      const frame = frameOf(block)
      block = []
      if (frame) yield frame
    }
  }
}

function frameOf(lines: readonly string[]): Frame | undefined {
  let id: string | undefined
  let event = 'message'
  const data: string[] = []
  for (const line of lines) {
    const [, name = '', value = ''] = /^([^:]*)(?:: ?(.*))?$/.exec(line) ?? []
    if (name === 'id') id = value
    if (name === 'event') event = value
    if (name === 'data') data.push(value)
  }
  if (data.length === 0 && event === 'message') return undefined
  const text = data.join('\n')
  return { ...(id !== undefined && { id }), event, data: text === '' ? undefined : JSON.parse(text) }
}
