import { StringDecoder } from 'node:string_decoder'
import { type Rate, TokenBucket } from '../../../../kernel/kit/rate.js'
import { clip } from '../../../../kernel/kit/text.js'
import type { AttributedFault } from '../../../../kernel/platform.js'
import type { Clock } from '../../../../kernel/plugin.js'
import { LONGEST_FORM, redactText, SecretMatcher } from '../../../platform/redaction/api.js'
import type { LogEntry } from './runtime.js'

/** Characters of a line that are kept, and those behind it that are still looked at for secrets. */
const LINE = 16 * 1024
const MARGIN = LONGEST_FORM
/** Bytes that an entry weighs beside its text. */
const ENTRY = 32
/** A shorter value is a word like any other. */
const MIN_SECRET = 4
/** Milliseconds within which whoever follows asks again. */
const AGAIN_MS = 5000
const MIB = 2 ** 20
const NEWLINE = 10

/** Characters of output that become lines; beyond that the extension is muted until half of the burst is there again. */
const HEARD: Rate = { burst: MIB, perSecond: 128 * 1024 }
/** Characters that a line costs beside its text: short lines are what is expensive. */
const LINE_COST = 256
/** Bytes that a process may write, heard or not; beyond that it floods and is to be ended. */
const TOLERATED: Rate = { burst: 64 * MIB, perSecond: MIB }
/** Milliseconds after which a mute is no news any more. */
const MUTE_NEWS_MS = 10 * 60_000

/** What was dropped of the output of an extension that wrote too much. */
export interface Mute {
  /** Bytes. */
  readonly dropped: number
  /** Epoch milliseconds of the last of it. */
  readonly at: number
}

/** The last lines of an extension, what its process wrote and what is said about it; secrets are taken out before they are kept. */
export class LogRing {
  /** Entries before `#first` have left the ring; the array is shortened when they are half of it. */
  #entries: LogEntry[] = []
  #first = 0
  #bytes = 0
  #sequence = 0
  #rest = ''
  #secrets = new SecretMatcher()
  #followers = 0
  #followedAt = Number.NEGATIVE_INFINITY
  #isMuted = false
  /** The beginning of a line was dropped, and with it perhaps the first half of a value to hide: the line is dropped as a whole. */
  #isInLine = false
  #decoder = new StringDecoder('utf8')
  #mute: Mute | undefined
  readonly #heard: TokenBucket
  readonly #tolerated: TokenBucket

  /** @param limit bytes that are kept */
  constructor(
    readonly epoch: string,
    private readonly clock: Pick<Clock, 'now' | 'monotonic'>,
    private readonly limit = 256 * 1024,
  ) {
    this.#heard = new TokenBucket(HEARD, clock)
    this.#tolerated = new TokenBucket(TOLERATED, clock)
  }

  /** Values that must not be shown, beside what looks like a secret. */
  hide(secrets: readonly string[]): void {
    this.#secrets = new SecretMatcher()
    this.alsoHide(secrets)
  }

  /** Values beside those of {@link hide}. */
  alsoHide(secrets: readonly string[]): void {
    for (const secret of secrets)
      if (Buffer.byteLength(secret.trim()) >= MIN_SECRET) this.#secrets.add(secret, { short: true })
  }

  /**
   * Output as it comes; whole lines are kept, cut where they are too long. Output beyond the rate is dropped, with a note.
   * @returns false when its process writes so much that it is to be ended
   */
  push(output: Buffer): boolean {
    if (this.#tolerated.take(output.length) > 0) return false
    // Decoding what is no text costs more than anything else here.
    if (!this.#hears(output.length)) {
      this.#isInLine = output.at(-1) !== NEWLINE
      return true
    }
    const text = this.#decoder.write(output)
    let start = 0
    if (this.#isInLine) {
      start = text.indexOf('\n') + 1
      if (start === 0) return true
      this.#isInLine = false
    }
    while (start < text.length) {
      const end = text.indexOf('\n', start)
      const part = text.slice(start, end < 0 ? text.length : end)
      if (!this.#heard.tryTake(part.length + LINE_COST)) {
        this.#silence(text.length - start)
        this.#isInLine = output.at(-1) !== NEWLINE
        break
      }
      this.#rest = clip(`${this.#rest}${clip(part, LINE + MARGIN)}`, LINE + MARGIN)
      if (end < 0) break
      this.#keepRest()
      start = end + 1
    }
    return true
  }

  /** The output is over. An unfinished line ends before what may be the first half of a value to hide. */
  end(): void {
    const stream = this.#secrets.stream()
    stream.push(this.#rest)
    const { held } = stream
    if (held >= MIN_SECRET) this.#rest = `${this.#rest.slice(0, -held)}…`
    this.#keepRest()
  }

  #keepRest(): void {
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
    const message = clip(this.redact(clip(text, LINE + MARGIN)), LINE).trimEnd()
    if (message === '') return
    const entry = { sequence: ++this.#sequence, at: this.clock.now(), message }
    this.#entries.push(entry)
    this.#bytes += weightOf(entry)
    while (this.#bytes > this.limit) this.#bytes -= weightOf(this.#entries[this.#first++] as LogEntry)
    if (this.#first * 2 <= this.#entries.length) return
    this.#entries = this.#entries.slice(this.#first)
    this.#first = 0
  }

  /** A text without the values to hide and without what looks like a secret. */
  redact(text: string): string {
    return redactText(this.#secrets.replace(text))
  }

  /** It drops what comes, which costs nothing. */
  get isMuted(): boolean {
    return this.#isMuted
  }

  /** What was dropped lately; undefined when nothing was. */
  get muted(): Mute | undefined {
    return this.#mute && this.clock.now() - this.#mute.at < MUTE_NEWS_MS ? this.#mute : undefined
  }

  /** Somebody waits for what comes, until the returned function is called. */
  follow(): () => void {
    this.#followers++
    return () => {
      this.#followers--
      this.#followedAt = this.clock.now()
    }
  }

  /** Somebody waits for what comes, or did so a moment ago. */
  get isFollowed(): boolean {
    return this.#followers > 0 || Math.abs(this.clock.now() - this.#followedAt) < AGAIN_MS
  }

  entries(): readonly LogEntry[] {
    return this.#entries.slice(this.#first)
  }

  /** While it is muted, output keeps the bucket empty: only an extension that writes less is heard again. */
  #hears(bytes: number): boolean {
    if (!this.#isMuted) return true
    const { left } = this.#heard
    if (left < HEARD.burst / 2) {
      this.#heard.take(Math.min(bytes, Math.max(0, left)))
      this.#drop(bytes)
      return false
    }
    this.#isMuted = false
    this.note(`it is heard again; ${kib(this.#mute)} KiB of its output were dropped so far`)
    return true
  }

  #silence(dropped: number): void {
    this.#isMuted = true
    this.#rest = ''
    this.#decoder = new StringDecoder('utf8')
    this.#drop(dropped)
    this.note(
      `muted: it writes more than ${HEARD.perSecond / 1024} KiB a second, and until it writes less that is dropped`,
    )
  }

  #drop(dropped: number): void {
    this.#mute = { dropped: (this.#mute?.dropped ?? 0) + dropped, at: this.clock.now() }
  }
}

const weightOf = ({ message }: LogEntry): number => Buffer.byteLength(message) + ENTRY

const kib = (mute: Mute | undefined): number => Math.ceil((mute?.dropped ?? 0) / 1024)

/** Faults that the daemon attributes to the code of an extension, as lines of its log. */
export class FaultNotes {
  constructor(
    private readonly log: LogRing,
    /** Epoch milliseconds of the last fault that is in the log. */
    private until: number,
  ) {}

  /** Notes each fault of plugins of these names once. */
  note(faults: readonly AttributedFault[], owners: readonly (string | undefined)[]): void {
    const since = this.until
    for (const { owner, at, count, where, error } of faults) {
      if (!owners.includes(owner) || at <= since) continue
      this.until = Math.max(this.until, at)
      this.log.note(`failed in ${where}${count > 1 ? `, ${count} times` : ''}: ${error}`)
    }
  }
}
