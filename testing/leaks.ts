import { createHook } from 'node:async_hooks'
import { placeInCopy } from '../plugins/delivery/extensions/api.js'

/** What lives on when nobody ends it, by how Node calls it. */
const KINDS: ReadonlyMap<string, string> = new Map([
  ['Timeout', 'a timer'],
  ['TCPWRAP', 'a socket'],
  ['TCPSERVERWRAP', 'a listening socket'],
  ['PIPEWRAP', 'a pipe'],
  ['PIPESERVERWRAP', 'a listening pipe'],
  ['UDPWRAP', 'a socket'],
  ['PROCESSWRAP', 'a process'],
  ['WORKER', 'a thread'],
  ['FSEVENTWRAP', 'a watcher of files'],
  ['STATWATCHER', 'a watcher of files'],
  ['SIGNALWRAP', 'a listener for a signal'],
])
/** Frames of Node may lie above those of the extension. */
const FRAMES = 50
/** Milliseconds between two looks, and how many there are until what ends by itself has ended. */
const APART_MS = 10
const LOOKS = 50

/** Sees what code of an extension makes by itself, past the kernel, and does not end. Slow: for tests. */
export class Leaks {
  /** By Node's id of it: `a timer, made in main.js:3:5`. */
  readonly #made = new Map<number, string>()
  readonly #listeners = listenersOf()
  readonly #hook = createHook({
    init: (id, type) => {
      const kind = KINDS.get(type)
      const where = kind && placeInExtension()
      if (where) this.#made.set(id, `${kind}, made in ${where}`)
    },
    destroy: id => void this.#made.delete(id),
  })

  constructor() {
    this.#hook.enable()
  }

  /** What is left of everything since this was made; waits a moment for what is just ending. */
  async left(): Promise<string[]> {
    for (let look = 0; look < LOOKS && this.#now().length > 0; look++) {
      await new Promise(resolve => setTimeout(resolve, APART_MS))
    }
    return this.#now()
  }

  end(): void {
    this.#hook.disable()
  }

  #now(): string[] {
    const more = [...listenersOf()].flatMap(([event, count]) => {
      const grew = count - (this.#listeners.get(event) ?? 0)
      return Array.from({ length: Math.max(0, grew) }, () => `a listener, process.on('${event}')`)
    })
    return [...this.#made.values(), ...more].sort()
  }
}

const listenersOf = (): ReadonlyMap<string, number> =>
  new Map(process.eventNames().map(event => [String(event), process.listenerCount(event)]))

/** The nearest frame in the copy of an extension. */
function placeInExtension(): string | undefined {
  const limit = Error.stackTraceLimit
  Error.stackTraceLimit = FRAMES
  const { stack = '' } = new Error()
  Error.stackTraceLimit = limit
  return placeInCopy(stack)?.place
}
