// Load generator for sessions: prompts, and readers of their streams, in a process of its own.
import http from 'node:http'
import type { Script } from './acp-script.js'
import { answer } from './child.js'

/** What readers of one stream saw. */
export interface Seen {
  readonly ms: number
  readonly frames: number
  readonly bytes: number
  /** Milliseconds from the agent to a reader. */
  readonly p50: number
  readonly p99: number
}

/** One reader; `done` resolves at the first frame of that name, and rejects when the stream ends before. */
class Reader {
  frames = 0
  bytes = 0
  readonly late: number[] = []
  readonly opened: Promise<void>
  readonly done: Promise<void>
  readonly request: http.ClientRequest
  #tail = ''
  #waiting: { frames: number; resolve: () => void } | undefined
  pause = () => {}
  resume = () => {}

  constructor(socketPath: string, path: string, until: string, times = false) {
    let open: () => void = () => {}
    let over: () => void = () => {}
    let cut: (error: Error) => void = () => {}
    this.done = new Promise((resolve, reject) => {
      over = resolve
      cut = reject
    })
    this.opened = new Promise((resolve, reject) => {
      open = resolve
      this.done.catch(reject)
    })
    this.opened.catch(() => {})
    this.request = http.get({ socketPath, path, agent: false }, response => {
      if (response.statusCode !== 200) throw new Error(`${path}: ${response.statusCode}`)
      open()
      this.pause = () => response.pause()
      this.resume = () => response.resume()
      response.setEncoding('latin1').on('data', (text: string) => {
        this.bytes += text.length
        const all = this.#tail + text
        const from = Math.max(0, this.#tail.length - 1)
        for (let at = all.indexOf('\n\n', from); at >= 0; at = all.indexOf('\n\n', at + 2)) this.frames++
        if (times) {
          const now = Date.now()
          for (const [, at] of text.matchAll(/@(\d{13})@/g)) this.late.push(now - Number(at))
        }
        if (all.includes(`event: ${until}\n`)) over()
        if (this.#waiting && this.frames >= this.#waiting.frames) this.#waiting.resolve()
        this.#tail = all.slice(-1000)
      })
      response.on('end', () => cut(new Error(`the stream ended: ${this.#tail}`)))
    })
    this.request.on('error', error => cut(error))
  }

  has(frames: number): Promise<void> {
    if (this.frames >= frames) return Promise.resolve()
    return new Promise(resolve => {
      this.#waiting = { frames, resolve }
    })
  }
}

const AT_ONCE = 100

function post(socketPath: string, path: string, body: object): Promise<string> {
  const text = JSON.stringify(body)
  const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }
  return new Promise((resolve, reject) => {
    const request = http.request({ socketPath, method: 'POST', path, agent: false, headers }, response => {
      let reply = ''
      response.setEncoding('utf8').on('data', piece => {
        reply += piece
      })
      response.on('end', () => ((response.statusCode ?? 500) < 300 ? resolve(reply) : reject(new Error(reply))))
    })
    request.on('error', reject).end(text)
  })
}

const prompt = (socket: string, at: string, script: Script) =>
  post(socket, `${at}/prompt`, { text: JSON.stringify(script) })
/** No further frame: what is there already is not asked for. */
const fresh = (at: string) => `${at}/stream?frames=raw&after_sequence=`
const quantile = (sorted: readonly number[], q: number) => sorted[Math.floor(sorted.length * q)] ?? Number.NaN

const handlers = {
  /** Milliseconds of each of some turns, until their last frame has come. */
  async turns(socket: string, at: string, last: number, count: number, script: Script): Promise<number[]> {
    const times: number[] = []
    for (let i = 0, after = last; i < count; i++) {
      const reader = new Reader(socket, fresh(at) + after, 'done')
      await reader.opened
      const began = performance.now()
      await prompt(socket, at, script)
      await reader.done
      times.push(performance.now() - began)
      after += reader.frames
      reader.request.destroy()
    }
    return times
  },
  /** A turn in each session, read by one reader each; milliseconds until all have seen the end. */
  async all(socket: string, ats: readonly (readonly [string, number])[], script: Script): Promise<number> {
    const readers = ats.map(([at, last]) => new Reader(socket, fresh(at) + last, 'done'))
    await Promise.all(readers.map(reader => reader.opened))
    const began = performance.now()
    await Promise.all(ats.map(([at]) => prompt(socket, at, script)))
    await Promise.all(readers.map(reader => reader.done))
    const elapsed = performance.now() - began
    for (const reader of readers) reader.request.destroy()
    return elapsed
  },
  /** One turn, read by many. */
  async readers(socket: string, at: string, last: number, count: number, script: Script): Promise<Seen> {
    const readers: Reader[] = []
    // As many at once as may wait at a socket.
    for (let open = 0; open < count; open += AT_ONCE) {
      const more = Array.from(
        { length: Math.min(AT_ONCE, count - open) },
        () => new Reader(socket, fresh(at) + last, 'done', script.kind === 'tool'),
      )
      await Promise.all(more.map(reader => reader.opened))
      readers.push(...more)
    }
    const began = performance.now()
    await prompt(socket, at, script)
    await Promise.all(readers.map(reader => reader.done))
    const elapsedMs = performance.now() - began
    const late = readers.flatMap(reader => reader.late).sort((a, b) => a - b)
    const sum = (of: (reader: Reader) => number) => readers.reduce((all, reader) => all + of(reader), 0)
    for (const reader of readers) reader.request.destroy()
    return {
      ms: elapsedMs,
      frames: sum(reader => reader.frames),
      bytes: sum(reader => reader.bytes),
      p50: quantile(late, 0.5),
      p99: quantile(late, 0.99),
    }
  },
  /** One that reads nothing while a turn runs; milliseconds for what it missed, and how many frames that were. */
  async slow(socket: string, at: string, last: number, script: Script): Promise<{ ms: number; missed: number }> {
    const slow = new Reader(socket, fresh(at) + last, 'done')
    const quick = new Reader(socket, fresh(at) + last, 'done')
    await Promise.all([slow.opened, quick.opened])
    slow.pause()
    await prompt(socket, at, script)
    await quick.done
    const missed = quick.frames - slow.frames
    const began = performance.now()
    slow.resume()
    await slow.done
    for (const reader of [slow, quick]) reader.request.destroy()
    return { ms: performance.now() - began, missed }
  },
  /** Milliseconds until some frames of a stream have come. */
  async open(socket: string, url: string, frames: number): Promise<number> {
    const began = performance.now()
    const reader = new Reader(socket, url, 'none')
    await reader.has(frames)
    reader.request.destroy()
    return performance.now() - began
  },
}
export type StreamLoad = typeof handlers
answer(handlers)
