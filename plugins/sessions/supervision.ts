import type { Clock } from '../../kernel/plugin.js'
import type { EventContent } from './events.js'
import type { Pulse } from './pulse.js'
import type { SessionLimits } from './settings.js'

/** Looks at the processes before the verdict that they are frozen. */
const LOOKS = 3
/** Share of one CPU above which silent processes are at work; timers and garbage collection stay below. */
const WORKING = 0.02

/** What is watched, and what is done about it. */
export interface Supervised {
  readonly clock: Clock
  readonly limits: SessionLimits
  /** Asks a person, so that the agent is not to blame for the silence. */
  waitsForPerson(): boolean
  /** Of the agent's processes; undefined when nothing can be known. */
  pulse(): Pulse | undefined
  /** The session is alive: told every so often. */
  heartbeat(): void
  say(type: 'runtime_warning' | 'runtime_progress', content: EventContent): void
  /** The turn took too long: it is to be canceled. Supervision ends with it. */
  expired(limit: 'activity_timeout' | 'turn_timeout'): void
  /** The processes are frozen, so that nothing they are asked reaches them. Supervision ends with it. */
  frozen(): void
}

/** Watches over one turn: how long it takes, whether anything comes, whether its processes live (Behaviour 6.5, decision 23). */
export class Supervision {
  readonly #begun: number
  /** When something last came, and when the processes were last at work. */
  #heard: number
  #worked: number
  #warned = false
  #progress = 0
  #beats = 0
  #frozenLooks = 0
  #looked: { readonly at: number; readonly cpuMs: number } | undefined
  #timer: { cancel(): void } | undefined

  constructor(private readonly turn: Supervised) {
    this.#begun = turn.clock.monotonic()
    this.#heard = this.#begun
    this.#worked = this.#begun
  }

  /** Milliseconds since the turn began. */
  get elapsedMs(): number {
    return this.turn.clock.monotonic() - this.#begun
  }

  /** It looks as if nothing more will come. */
  get stalled(): boolean {
    return this.#warned || this.#frozenLooks > 0
  }

  /** Something came from the agent. */
  touch(): void {
    this.#heard = this.turn.clock.monotonic()
    this.#worked = this.#heard
    this.#warned = false
    this.#frozenLooks = 0
  }

  /** Does what is due now, and comes back when the next thing is. */
  watch(): void {
    const { clock, limits } = this.turn
    const now = clock.monotonic()
    const elapsed = now - this.#begun
    if (this.turn.waitsForPerson()) this.touch()
    const lookEvery = this.#lookEvery()
    const lookDue = (this.#looked?.at ?? this.#begun) + lookEvery
    if (now >= lookDue) this.#look(now)
    const idle = now - this.#worked
    if (this.#frozenLooks >= LOOKS) return this.turn.frozen()
    if (limits.turnTimeout > 0 && elapsed >= limits.turnTimeout) return this.turn.expired('turn_timeout')
    if (limits.inactivityTimeout > 0 && idle >= limits.inactivityTimeout) return this.turn.expired('activity_timeout')
    if (limits.inactivityWarning > 0 && idle >= limits.inactivityWarning && !this.#warned) {
      this.#warned = true
      this.turn.say('runtime_warning', { warning: 'inactivity', idle_seconds: Math.round(idle / 1000) })
    }
    if (limits.progressNotify > 0 && elapsed >= (this.#progress + 1) * limits.progressNotify) {
      this.#progress = Math.floor(elapsed / limits.progressNotify)
      this.turn.say('runtime_progress', { elapsed_seconds: Math.round(elapsed / 1000) })
    }
    if (limits.heartbeat > 0 && elapsed >= (this.#beats + 1) * limits.heartbeat) {
      this.#beats = Math.floor(elapsed / limits.heartbeat)
      this.turn.heartbeat()
    }
    const left = (limit: number, used: number) => (limit > 0 ? limit - used : Number.POSITIVE_INFINITY)
    const next = Math.min(
      lookEvery - (now - (this.#looked?.at ?? this.#begun)),
      left(limits.turnTimeout, elapsed),
      left(limits.inactivityTimeout, idle),
      this.#warned ? Number.POSITIVE_INFINITY : left(limits.inactivityWarning, idle),
      left(limits.progressNotify, elapsed - this.#progress * limits.progressNotify),
      left(limits.heartbeat, elapsed - this.#beats * limits.heartbeat),
    )
    if (Number.isFinite(next)) this.#timer = clock.timeout(Math.max(1, next), () => this.watch(), { unref: true })
  }

  close(): void {
    this.#timer?.cancel()
    this.#timer = undefined
  }

  /** Milliseconds between two looks at the processes; infinite when nobody wants to know. */
  #lookEvery(): number {
    const wanted = [this.turn.limits.frozenAfter, this.turn.limits.inactivityTimeout].filter(limit => limit > 0)
    return Math.min(...wanted) / LOOKS
  }

  /** Only processes from which nothing came since the last look can be frozen, or at work in silence. */
  #look(now: number): void {
    const before = this.#looked
    const silent = this.#heard <= (before?.at ?? this.#begun)
    const pulse = silent ? this.turn.pulse() : undefined
    this.#looked = { at: now, cpuMs: pulse?.cpuMs ?? 0 }
    this.#frozenLooks = pulse?.frozen && this.turn.limits.frozenAfter > 0 ? this.#frozenLooks + 1 : 0
    if (!pulse || !before || before.cpuMs === 0) return
    if (pulse.cpuMs - before.cpuMs >= (now - before.at) * WORKING) this.#worked = now
  }
}
