import type { Clock } from '../../../../kernel/plugin.js'
import type { EventContent, Pulse } from '../../acp/api.js'
import type { SessionLimits } from '../settings.js'

/** Looks at the processes before they count as frozen. */
const LOOKS = 3
/** Share of one CPU above which silent processes count as working; timers and garbage collection stay below. */
const WORKING = 0.02

/** The supervised turn, and the reactions to each finding. */
export interface Supervised {
  readonly clock: Clock
  readonly limits: SessionLimits
  /** A person is being asked, so the agent is not responsible for the silence. */
  waitsForPerson(): boolean
  /** A tool of the agent runs, which may be silent for long. */
  toolRuns(): boolean
  /** State of the agent's processes; undefined when it cannot be known. */
  pulse(): Pulse | undefined
  /** Called periodically while the session shows activity. */
  heartbeat(): void
  say(type: 'runtime_warning' | 'runtime_progress', content: EventContent): void
  /** A time limit was exceeded: the turn is to be canceled. Supervision ends. */
  expired(limit: 'activity_timeout' | 'turn_timeout'): void
  /** The processes were unresponsive at this number of consecutive checks. Only the last check ends the turn. */
  stoodStill(looks: number, isLast: boolean): void
  /** The processes are stopped, so a cancel would not reach them. Supervision ends. */
  frozen(): void
}

/** Supervises one turn: its duration, the agent's activity, and whether its processes are alive. */
export class Supervision {
  readonly #startedAt: number
  /** Time of the last output, and time of the last CPU activity of the processes. */
  #heard: number
  #worked: number
  #warned = false
  #saidSilent = false
  #progress = 0
  #beats = 0
  #frozenLooks = 0
  #lookedAt: number
  /** CPU time at the last check; undefined when it was not needed. */
  #cpuMs: number | undefined
  #timer: { cancel(): void } | undefined

  constructor(private readonly turn: Supervised) {
    this.#startedAt = turn.clock.monotonic()
    this.#heard = this.#startedAt
    this.#worked = this.#startedAt
    this.#lookedAt = this.#startedAt
  }

  /** Milliseconds since the turn began. */
  get elapsedMs(): number {
    return this.turn.clock.monotonic() - this.#startedAt
  }

  /** No more output is expected. */
  get stalled(): boolean {
    return this.#warned || this.#frozenLooks > 0
  }

  /** Records output of the agent. */
  touch(): void {
    this.#heard = this.turn.clock.monotonic()
    this.#worked = this.#heard
    this.#warned = false
    this.#saidSilent = false
    this.#frozenLooks = 0
  }

  /** Runs the checks that are due and schedules the next one; ends after a verdict. */
  watch(): void {
    const { clock } = this.turn
    const now = clock.monotonic()
    if (this.turn.waitsForPerson()) this.touch()
    if (now >= this.#lookedAt + this.#lookEvery()) this.#inspect(now)
    const verdict = this.#verdict(now)
    if (verdict === 'frozen') this.turn.frozen()
    else if (verdict) this.turn.expired(verdict)
    else {
      this.#tell(now)
      const next = this.#nextIn(now)
      if (Number.isFinite(next)) this.#timer = clock.timeout(Math.max(1, next), () => this.watch(), { unref: true })
    }
  }

  close(): void {
    this.#timer?.cancel()
    this.#timer = undefined
  }

  #verdict(now: number): 'frozen' | 'turn_timeout' | 'activity_timeout' | undefined {
    const { turnTimeout, inactivityTimeout } = this.turn.limits
    if (this.#frozenLooks >= LOOKS) return 'frozen'
    if (turnTimeout > 0 && now - this.#startedAt >= turnTimeout) return 'turn_timeout'
    return inactivityTimeout > 0 && now - this.#worked >= inactivityTimeout ? 'activity_timeout' : undefined
  }

  #tell(now: number): void {
    const { inactivityWarning, progressNotify, heartbeat } = this.turn.limits
    const elapsed = now - this.#startedAt
    const idle = now - this.#worked
    if (this.#silenceLeft(now) <= 0) {
      this.#saidSilent = true
      this.turn.say('runtime_warning', silence(now - this.#heard))
    }
    if (inactivityWarning > 0 && idle >= inactivityWarning && !this.#warned) {
      this.#warned = true
      this.turn.say('runtime_warning', { warning: 'inactivity', idle_seconds: Math.round(idle / 1000) })
    }
    if (progressNotify > 0 && elapsed >= (this.#progress + 1) * progressNotify) {
      this.#progress = Math.floor(elapsed / progressNotify)
      this.turn.say('runtime_progress', { elapsed_seconds: Math.round(elapsed / 1000) })
    }
    if (heartbeat > 0 && elapsed >= (this.#beats + 1) * heartbeat) {
      this.#beats = Math.floor(elapsed / heartbeat)
      this.turn.heartbeat()
    }
  }

  /** Milliseconds until the next check may be due; infinite when none ever is. */
  #nextIn(now: number): number {
    const { turnTimeout, inactivityTimeout, inactivityWarning, progressNotify, heartbeat } = this.turn.limits
    const elapsed = now - this.#startedAt
    const idle = now - this.#worked
    const left = (limit: number, used: number) => (limit > 0 ? limit - used : Number.POSITIVE_INFINITY)
    return Math.min(
      this.#lookedAt + this.#lookEvery() - now,
      this.#silenceLeft(now),
      left(turnTimeout, elapsed),
      left(inactivityTimeout, idle),
      this.#warned ? Number.POSITIVE_INFINITY : left(inactivityWarning, idle),
      left(progressNotify, elapsed - this.#progress * progressNotify),
      left(heartbeat, elapsed - this.#beats * heartbeat),
    )
  }

  /** Milliseconds until a silence is reported; infinite once it was, and while a tool runs. */
  #silenceLeft(now: number): number {
    const { silenceNotice } = this.turn.limits
    if (silenceNotice === 0 || this.#saidSilent) return Number.POSITIVE_INFINITY
    const left = silenceNotice - (now - this.#heard)
    // The end of a tool begins a new silence, which the next check sees.
    return left <= 0 && this.turn.toolRuns() ? Number.POSITIVE_INFINITY : left
  }

  /** Milliseconds between two checks of the processes; infinite when no limit needs them. */
  #lookEvery(): number {
    const wanted = [this.turn.limits.frozenAfter, this.turn.limits.inactivityTimeout].filter(limit => limit > 0)
    return Math.min(...wanted) / LOOKS
  }

  /** Only processes without output since the last check can be frozen, or work silently. */
  #inspect(now: number): void {
    const since = this.#lookedAt
    const before = this.#cpuMs
    const pulse = this.#heard <= since ? this.turn.pulse() : undefined
    this.#lookedAt = now
    this.#cpuMs = pulse?.cpuMs
    this.#frozenLooks = pulse?.frozen && this.turn.limits.frozenAfter > 0 ? this.#frozenLooks + 1 : 0
    if (this.#frozenLooks > 0) this.turn.stoodStill(this.#frozenLooks, this.#frozenLooks >= LOOKS)
    const worked = pulse && before !== undefined ? pulse.cpuMs - before : 0
    if (worked >= (now - since) * WORKING) this.#worked = now
  }
}

/** The warning about a silent agent: most agents retry a failing model without any output. */
function silence(ms: number): EventContent {
  const idle = Math.round(ms / 1000)
  const text = `no output from the agent for ${idle} s: its model is slow, or its requests fail and are retried. Wait, or cancel the turn (Ctrl-C, or /cancel in svc session attach) and check the login and the model of the agent`
  return { warning: 'silent', idle_seconds: idle, text }
}
