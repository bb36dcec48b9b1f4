import { StringDecoder } from 'node:string_decoder'
import { type Rate, TokenBucket } from '../../../../kernel/kit/rate.js'
import { clip } from '../../../../kernel/kit/text.js'
import type { AttributedFault } from '../../../../kernel/platform.js'
import type { Clock } from '../../../../kernel/plugin.js'
import { LONGEST_FORM, redactText, SecretMatcher } from '../../../platform/redaction/api.js'

/** Kept characters of a line, and the characters beyond it that are still searched for secrets. */
const LINE = 16 * 1024
const MARGIN = LONGEST_FORM
/** Bytes of an entry in addition to its text. */
const ENTRY = 32
/** Values shorter than this are ordinary words and are not redacted. */
const MIN_SECRET = 4
/** Milliseconds within which a follower polls again. */
const AGAIN_MS = 5000
const MIB = 2 ** 20
const NEWLINE = 10

/** Rate of output that is kept; beyond it the extension is muted until half of the burst is available again. */
const HEARD: Rate = { burst: MIB, perSecond: 128 * 1024 }
/** Cost of a line in addition to its characters: many short lines are expensive. */
const LINE_COST = 256
/** Rate of output that is tolerated, kept or not; a process beyond it is ended. */
const TOLERATED: Rate = { burst: 64 * MIB, perSecond: MIB }
/** Milliseconds for which a mute is reported. */
const MUTE_NEWS_MS = 10 * 60_000

/** A log line of an extension or about it, with secrets redacted. */
export interface LogEntry {
  /** From 1, without gaps within an epoch. */
  readonly sequence: number
  /** Epoch milliseconds. */
  readonly at: number
  readonly message: string
}

/** Dropped output of an extension that exceeded the rate. */
export interface Mute {
  /** Bytes. */
  readonly dropped: number
  /** Epoch milliseconds of the last drop. */
  readonly at: number
}

/** The last output lines of an extension and notes about it; secrets are redacted before a line is stored. */
export class LogRing {
  /** Entries before `#first` have left the ring; the array is compacted when they are half of it. */
  #entries: LogEntry[] = []
  #first = 0
  #bytes = 0
  #sequence = 0
  #rest = ''
  #secrets = new SecretMatcher()
  #followers = 0
  #followedAt = Number.NEGATIVE_INFINITY
  #isMuted = false
  /** Set while the beginning of the current line was dropped: the rest could show the second half of a secret, so it is dropped too. */
  #isInLine = false
  #decoder = new StringDecoder('utf8')
  #mute: Mute | undefined
  readonly #heard: TokenBucket
  readonly #tolerated: TokenBucket

  /** @param limit bytes of kept entries */
  constructor(
    readonly epoch: string,
    private readonly clock: Pick<Clock, 'now' | 'monotonic'>,
    private readonly limit = 256 * 1024,
  ) {
    this.#heard = new TokenBucket(HEARD, clock)
    this.#tolerated = new TokenBucket(TOLERATED, clock)
  }

  /** Replaces the values that are redacted in addition to recognizable secrets. */
  hide(secrets: readonly string[]): void {
    this.#secrets = new SecretMatcher()
    this.alsoHide(secrets)
  }

  /** Adds values to those of {@link hide}. */
  alsoHide(secrets: readonly string[]): void {
    for (const secret of secrets)
      if (Buffer.byteLength(secret.trim()) >= MIN_SECRET) this.#secrets.add(secret, { short: true })
  }

  /**
   * Takes raw output; complete lines are kept, truncated if too long. Output beyond the rate is dropped, with a note.
   * @returns false if the process exceeds the tolerated rate and has to be ended
   */
  push(output: Buffer): boolean {
    if (this.#tolerated.take(output.length) > 0) return false
    // The check comes first: decoding binary data is the most expensive step here.
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

  /** The output is over. An unfinished line is cut where the first half of a secret may begin. */
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

  /** Logs a note of the daemon about the extension. */
  note(text: string): void {
    this.line(`[svc] ${text}`)
  }

  /** Logs a line of the extension itself. */
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

  /** Redacts hidden values and recognizable secrets in a text. */
  redact(text: string): string {
    return redactText(this.#secrets.replace(text))
  }

  /** Whether output is dropped, which costs nothing. */
  get isMuted(): boolean {
    return this.#isMuted
  }

  /** Recently dropped output; undefined if none. */
  get muted(): Mute | undefined {
    return this.#mute && this.clock.now() - this.#mute.at < MUTE_NEWS_MS ? this.#mute : undefined
  }

  /** Registers a follower until the returned function is called. */
  follow(): () => void {
    this.#followers++
    return () => {
      this.#followers--
      this.#followedAt = this.clock.now()
    }
  }

  /** Whether a follower waits now, or did within {@link AGAIN_MS}. */
  get isFollowed(): boolean {
    return this.#followers > 0 || Math.abs(this.clock.now() - this.#followedAt) < AGAIN_MS
  }

  entries(): readonly LogEntry[] {
    return this.#entries.slice(this.#first)
  }

  /** While muted, output keeps draining the bucket: only a lower rate ends the mute. */
  #hears(bytes: number): boolean {
    if (!this.#isMuted) return true
    const { left } = this.#heard
    if (left < HEARD.burst / 2) {
      this.#heard.take(Math.min(bytes, Math.max(0, left)))
      this.#drop(bytes)
      return false
    }
    this.#isMuted = false
    this.note(`its output is logged again; ${kib(this.#mute)} KiB of its output were dropped so far`)
    return true
  }

  #silence(dropped: number): void {
    this.#isMuted = true
    this.#rest = ''
    this.#decoder = new StringDecoder('utf8')
    this.#drop(dropped)
    this.note(`muted: it writes more than ${HEARD.perSecond / 1024} KiB/s; its output is dropped until it writes less`)
  }

  #drop(dropped: number): void {
    this.#mute = { dropped: (this.#mute?.dropped ?? 0) + dropped, at: this.clock.now() }
  }
}

const weightOf = ({ message }: LogEntry): number => Buffer.byteLength(message) + ENTRY

const kib = (mute: Mute | undefined): number => Math.ceil((mute?.dropped ?? 0) / 1024)

/** Logs the faults that the daemon attributes to the code of an extension. */
export class FaultNotes {
  constructor(
    private readonly log: LogRing,
    /** Epoch milliseconds of the last logged fault. */
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
