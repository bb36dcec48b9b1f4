import type { Socket } from 'node:net'
import type { Actor } from '../contract/actor.js'
import type { Fault } from '../contract/errors.js'
import type { Scope } from '../contract/scope.js'
import { type KernelHooks, kernelTapper } from '../hooks/kernel-hooks.js'
import type { Admission } from './admission.js'
import { type Arrival, operatorAt } from './arrival.js'
import { peerRefusal } from './guards.js'
import type { Peer } from './peers.js'

/** Waited at by requests over TCP while the plugin that authenticates them is away; no plugin can be named so. */
export const AUTHENTICATOR = '(authenticator)'

/** Taps of the kernel itself: one before those of all plugins, one behind. */
const OWN_TAPS = 2

/** Where TCP is served, as far as the daemon's own user is concerned. */
export interface Local {
  /** Whether a Host header names this machine, and nobody else can reach it. */
  isLocal(host: string | undefined): boolean
  /** Who is at the other end; undefined where the system does not tell. */
  peerOf(socket: Socket): Peer | Promise<Peer> | undefined
}

/** Who makes a request, as far as the kernel says it itself, and the waiting for the plugin that says it. */
export class Authentication {
  #letIn: (() => void) | undefined

  /** @param named the plugin without which TCP is not served; empty where any may authenticate, or none */
  constructor(
    private readonly hook: KernelHooks['authenticate'],
    private readonly admission: Admission,
    private readonly named: string,
  ) {}

  /**
   * The Unix socket and `inject` are the operator's, whatever plugins say. Over TCP the daemon's own user is the operator, while
   * no plugin authenticates.
   */
  tap(scope: Scope, { isLocal, peerOf }: Local): void {
    const tapper = kernelTapper(scope)
    this.hook.tap(tapper, incoming => {
      const arrival = incoming as Arrival
      if (arrival.door !== 'tcp') return arrival.as ?? operatorAt('uds', arrival.id)
      // Now, not behind those who are asked: one of them may go while it makes up its mind.
      arrival.isForPlugins = this.hook.size > OWN_TAPS
      return undefined
    })
    this.hook.tap({ ...tapper, depth: Number.POSITIVE_INFINITY }, incoming => {
      const { isForPlugins, request } = incoming as Arrival
      const { socket, headers } = request
      if (isForPlugins || !isLocal(headers.host)) return undefined
      const actor = operatorAt(headers['sec-fetch-site'] === 'same-origin' ? 'web' : 'http', incoming.id)
      const judged = (peer: Peer): Actor | Fault => peerRefusal(peer) ?? actor
      const peer = peerOf(socket)
      if (peer instanceof Promise) return peer.then(judged)
      return peer ? judged(peer) : actor
    })
  }

  /** Whether others than the daemon's own user can be told apart, now or once the named plugin runs. */
  get isByPlugin(): boolean {
    return this.named !== '' || this.hook.size > OWN_TAPS
  }

  /** Those who are waited for while these plugins are replaced: also who authenticates, when it is one of them. */
  heldWith(owners: readonly string[]): readonly string[] {
    return owners.some(owner => this.hook.has(owner)) ? [...owners, AUTHENTICATOR] : owners
  }

  /** While the named plugin does not authenticate, requests over TCP wait for it. */
  holdForNamed(): void {
    if (this.named !== '' && !this.hook.has(this.named)) this.#letIn ??= this.admission.hold([AUTHENTICATOR])
    else {
      this.#letIn?.()
      this.#letIn = undefined
    }
  }
}
