import { command } from '../../../kernel/kit/commands/command-line.js'
import { type Exchange, iso, type PluginKernel } from '../../../kernel/plugin.js'
import type { DiagnosticItem } from '../../../schemas/kernel/diagnostic.js'
import { finding } from '../../desk/daemon/api.js'

const MINUTE_MS = 60_000
const MINUTES = 60
/** Requests per hour from which doctor reports them; fewer may come from a mistyped or outdated token. */
const TOLD_FROM = 10

/** Counts requests over TCP with an invalid token: logs at most once a minute, and adds a doctor item. */
export class UnknownTokens {
  /** Counts of the last hour, by minute since 1970. */
  readonly #counts = new Map<number, number>()
  #loggedAt = Number.NEGATIVE_INFINITY
  #sinceLogged = 0
  #last: { readonly at: number; readonly address: string } | undefined

  constructor(private readonly kernel: Pick<PluginKernel, 'clock' | 'log'>) {}

  note({ door, status, headers, remoteAddress: address = 'an unknown address' }: Exchange): void {
    if (status !== 401 || door !== 'tcp' || headers.authorization === undefined) return
    const { clock, log } = this.kernel
    const minute = Math.floor(clock.now() / MINUTE_MS)
    this.#counts.set(minute, (this.#counts.get(minute) ?? 0) + 1)
    for (const other of this.#counts.keys()) if (isPast(other, minute)) this.#counts.delete(other)
    this.#last = { at: clock.now(), address }
    this.#sinceLogged++
    if (clock.monotonic() - this.#loggedAt < MINUTE_MS) return
    log.warn('a request over TCP was refused: its token is not valid', { address, requests: this.#sinceLogged })
    this.#loggedAt = clock.monotonic()
    this.#sinceLogged = 0
  }

  findings(): DiagnosticItem[] {
    const now = Math.floor(this.kernel.clock.now() / MINUTE_MS)
    const count = [...this.#counts].reduce((sum, [minute, n]) => (isPast(minute, now) ? sum : sum + n), 0)
    if (count < TOLD_FROM || !this.#last) return []
    const { at, address } = this.#last
    return [
      finding({
        ...{ id: 'auth.unknown_tokens', code: 'unknown_tokens', category: 'auth', severity: 'warning' },
        title: 'requests are refused because of their token',
        message: `${count} requests over TCP within an hour had a token that is not valid, the last one from ${address} at ${iso(at)}`,
        suggested_command: command('auth key list'),
        evidence: { requests: count, address },
      }),
    ]
  }
}

/** A minute in the future also counts as past: the clock was set back. */
const isPast = (minute: number, now: number): boolean => minute <= now - MINUTES || minute > now
