import type { IncomingMessage } from 'node:http'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Awaitable } from '../contract/awaitable.js'
import type { Clock } from '../contract/clock.js'
import type { Fault } from '../contract/errors.js'
import type { Contribution } from '../contract/hook.js'
import { within } from '../scope.js'
import type { GenerationContext } from './generation.js'

/** Milliseconds that a plugin has to say what becomes of a request that no route matches. */
const ASK_MS = 6000

export interface UnroutedOptions {
  readonly clock: Clock
  /** Those to be asked about a path, in order. */
  readonly unrouted: () => readonly Contribution<(path: string) => Awaitable<Fault | boolean>>[]
  readonly failed: (owner: string, where: string, error: unknown) => void
}

/** Requests that no route matches: a plugin may know of routes that are not there yet. Each is routed again once at most. */
export class Unrouted {
  readonly #again = new WeakSet<IncomingMessage>()

  constructor(private readonly options: UnroutedOptions) {}

  /** `true`: it is to be routed again; `false`: nobody knows it. */
  async ask(request: IncomingMessage): Promise<Fault | boolean> {
    if (this.#again.has(request)) return false
    const { clock, unrouted, failed } = this.options
    const [path = ''] = (request.url ?? '').split('?')
    for (const { owner, entry: ask } of unrouted()) {
      try {
        const answer = await within(clock, ASK_MS, Promise.resolve(ask(path)))
        if (answer === true) this.#again.add(request)
        if (answer !== false) return answer
      } catch (error) {
        failed(owner, 'unrouted', error)
      }
    }
    return false
  }
}

/** Before its body is read, for the route that may come. */
export function routeLater(
  request: FastifyRequest,
  reply: FastifyReply,
  { unrouted, again }: GenerationContext,
  done: (fault?: Error) => void,
): void {
  unrouted(request.raw).then(answer => {
    if (answer !== true) return done(answer || undefined)
    reply.hijack()
    again(request.raw, reply.raw)
  }, done)
}
