import { redactText } from '../sessions/api.js'
import type { LogEntry } from './runtime.js'

/** Characters of a line that are kept, and those behind it that are still looked at for secrets. */
const LINE = 16 * 1024
const MARGIN = 4 * 1024
/** A shorter value is a word like any other. */
const MIN_SECRET = 4
/** Milliseconds within which whoever follows asks again. */
const AGAIN_MS = 5000

/** The last lines of an extension, what its process wrote and what is said about it; secrets are taken out before they are kept. */
export class LogRing {
  #entries: LogEntry[] = []
  #bytes = 0
  #sequence = 0
  #rest = ''
  #secrets: readonly string[] = []
  #followers = 0
  #followedAt = Number.NEGATIVE_INFINITY

  /** @param limit bytes of text that are kept */
  constructor(
    readonly epoch: string,
    private readonly now: () => number,
    private readonly limit = 256 * 1024,
  ) {}

  /** Values that must not be shown, beside what looks like a secret. */
  hide(secrets: readonly string[]): void {
    this.#secrets = [...new Set(secrets.flatMap(secret => [secret, JSON.stringify(secret).slice(1, -1)]))]
      .filter(secret => secret.length >= MIN_SECRET)
      // One that contains another has to go first.
      .sort((a, b) => b.length - a.length)
  }

  /** Output as it comes; whole lines are kept, cut where they are too long. */
  push(text: string): void {
    const lines = `${this.#rest}${text}`.split('\n')
    this.#rest = (lines.pop() ?? '').slice(0, LINE + MARGIN)
    for (const line of lines) this.line(line)
  }

  /** What stands after the last line break. */
  flush(): void {
    const rest = this.#rest
    this.#rest = ''
    if (rest !== '') this.line(rest)
  }

  /** What the daemon says about the extension. */
  note(text: string): void {
    this.line(`[svc] ${text}`)
  }

  /** One line of the extension itself. */
  line(text: string): void {
    const message = this.redact(text.slice(0, LINE + MARGIN))
      .slice(0, LINE)
      .trimEnd()
    if (message === '') return
    this.#entries.push({ sequence: ++this.#sequence, at: this.now(), message })
    this.#bytes += Buffer.byteLength(message)
    let gone = 0
    while (this.#bytes > this.limit) this.#bytes -= Buffer.byteLength(this.#entries[gone++]?.message ?? '')
    if (gone > 0) this.#entries = this.#entries.slice(gone)
  }

  /** A text without the values to hide and without what looks like a secret. */
  redact(text: string): string {
    return redactText(this.#secrets.reduce((result, secret) => result.replaceAll(secret, '[redacted]'), text))
  }

  /** Somebody waits for what comes, until the returned function is called. */
  follow(): () => void {
    this.#followers++
    return () => {
      this.#followers--
      this.#followedAt = this.now()
    }
  }

  /** Somebody waits for what comes, or did so a moment ago. */
  get isFollowed(): boolean {
    return this.#followers > 0 || Math.abs(this.now() - this.#followedAt) < AGAIN_MS
  }

  entries(): readonly LogEntry[] {
    return this.#entries
  }
}
