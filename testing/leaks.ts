import { createHook } from 'node:async_hooks'
import { placeInCopy } from '../plugins/delivery/extensions/api.js'

/** Resources that stay until they are ended, by Node's name for them. */
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
/** Maximum depth of the stack: frames of Node may precede those of the extension. */
const FRAMES = 50
/** Milliseconds between two checks, and the maximum number of checks, so that resources that are just ending can end. */
const APART_MS = 10
const LOOKS = 50

/** Finds resources that an extension's code created directly, without the kernel, and did not end. Slow, so only for tests. */
export class Leaks {
  /** The resources by Node's async id: `a timer, made in main.js:3:5`. */
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

  /** The resources that were created since the construction and still exist; waits a moment for ones that are just ending. */
  async left(): Promise<string[]> {
    for (let pass = 0; pass < LOOKS && this.#now().length > 0; pass++) {
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

/** The nearest stack frame inside an extension. */
function placeInExtension(): string | undefined {
  const limit = Error.stackTraceLimit
  Error.stackTraceLimit = FRAMES
  const { stack = '' } = new Error()
  Error.stackTraceLimit = limit
  return placeInCopy(stack)?.location
}
