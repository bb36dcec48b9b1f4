import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import { connect } from 'node:net'
import { createInterface, type Interface } from 'node:readline'

/** What the daemon says of its own memory, in bytes, and of its handles. */
export interface Measured {
  readonly rss: number
  readonly heapUsed: number
  readonly external: number
  readonly handles: number
}

/** The side of the proof of the socket in `probe.mjs`. */
export class Probe {
  readonly #lines: AsyncIterator<string>

  private constructor(
    private readonly socket: Socket,
    private readonly reader: Interface,
  ) {
    this.#lines = reader[Symbol.asyncIterator]()
  }

  static async open(path: string): Promise<Probe> {
    const socket = connect(path)
    await once(socket, 'connect')
    return new Probe(socket, createInterface(socket))
  }

  measure(): Promise<Measured> {
    return this.#ask({ measure: true })
  }

  async jump(ms: number): Promise<void> {
    await this.#ask({ jump: ms })
  }

  close(): void {
    this.reader.close()
    this.socket.destroy()
  }

  async #ask<T>(request: object): Promise<T> {
    this.socket.write(`${JSON.stringify(request)}\n`)
    const { value, done } = await this.#lines.next()
    if (done) throw new Error('the daemon closed the probe')
    return JSON.parse(value) as T
  }
}

export const descriptorsOf = (pid: number): number => readdirSync(`/proc/${pid}/fd`).length

/** Processes below a process, and how many of them have ended and were not waited for. */
export function descendantsOf(pid: number): { readonly children: number; readonly zombies: number } {
  const parents = new Map<number, { readonly parent: number; readonly state: string }>()
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue
    try {
      const text = readFileSync(`/proc/${name}/stat`, 'utf8')
      const [state = '', parent] = text.slice(text.lastIndexOf(')') + 2).split(' ')
      parents.set(Number(name), { parent: Number(parent), state })
    } catch {
      // It ended meanwhile.
    }
  }
  const isBelow = (one: number): boolean => {
    for (let at = parents.get(one)?.parent; at !== undefined && at > 1; at = parents.get(at)?.parent)
      if (at === pid) return true
    return false
  }
  const below = [...parents].filter(([one]) => isBelow(one))
  const zombies = below.filter(([, { state }]) => state === 'Z').length
  return { children: below.length - zombies, zombies }
}
