import { watch } from 'node:fs'
import { lstat } from 'node:fs/promises'
import { Serial } from '../../../kernel/kit/serial.js'
import { type Clock, type Log, messageOf, type Scope } from '../../../kernel/plugin.js'
import type { TextFile } from '../files/api.js'
import type { FileSource } from './source.js'

/** A burst of writes, or a write by temporary file and rename, is one change. Milliseconds. */
const SETTLE_MS = 100
/** An empty or missing file may be the middle of a write: it is believed when it still is so after this. Milliseconds. */
const EMPTY_MS = 1000
/** Where there is no file of its own (none, a link, a folder), none can be watched: it is read again after this. Milliseconds. */
const LOOK_MS = 1000
/** Watching begins when the start is over; what changed until then is read too. Milliseconds. */
const WATCH_AFTER_MS = 500

/** A file of which the last valid text counts. */
interface Followed {
  readonly file: TextFile
  readonly text: string
  problem: string | undefined
}

/** Reads the file of the configuration again whenever it is saved. A text that is not valid changes nothing. */
export class Follower {
  #unwatched = false
  readonly #turns = new Serial()

  constructor(
    private readonly source: FileSource,
    private readonly clock: Clock,
    private readonly scope: Scope,
    private readonly log: Log,
  ) {}

  /** One reads or writes at a time; the work must not wait for its own turn. */
  alone<T>(work: () => Promise<T>): Promise<T> {
    return this.#turns.run(work)
  }

  /** Resolves when nobody reads or writes. */
  idle(): Promise<void> {
    return this.#turns.idle()
  }

  /** Until the signal aborts. */
  async follow(signal: AbortSignal): Promise<void> {
    await this.clock.sleep(WATCH_AFTER_MS, signal)
    while (!signal.aborted) {
      const changed = await this.#watch(signal)
      await this.reload().catch(() => {})
      await changed()
      if (!signal.aborted) await this.clock.sleep(SETTLE_MS, signal)
    }
  }

  /** Reads the file again. What is not valid changes nothing, and is the `problem` of the state. */
  reload(): Promise<void> {
    const { source } = this
    const take = (text: string) => source.take(text)
    return this.alone(() => this.reread(source, 'config.json', take, () => source.values.pending()))
  }

  /** The text of a file; one that has become empty is believed a second later, for it may be the middle of a write. */
  async textOf(file: TextFile, known: string): Promise<string> {
    const { signal } = this.scope
    const text = (await file.read()) ?? ''
    if (text.trim() !== '' || known.trim() === '' || signal.aborted) return text
    await this.clock.sleep(EMPTY_MS, signal).catch(() => {})
    return signal.aborted ? known : ((await file.read()) ?? '')
  }

  /**
   * Watches for one change; the returned function resolves when it has come. The one after it needs a watch of its own: another
   * file may lie under the name then, of which this watch would not tell.
   */
  async #watch(signal: AbortSignal): Promise<() => Promise<void>> {
    const { where } = this.source
    const look = () => this.clock.sleep(LOOK_MS, signal).catch(() => {})
    const isFile = await lstat(where).then(
      found => found.isFile(),
      () => false,
    )
    if (!isFile) return look
    const one = new AbortController()
    const change = new Promise<void>((resolve, reject) => {
      const watcher = watch(where, { signal: AbortSignal.any([signal, one.signal]) })
      watcher.once('change', () => resolve()).once('close', () => resolve())
      watcher.once('error', reject)
    }).finally(() => one.abort())
    change.catch(() => {}) // it may fail before it is waited for
    return () =>
      change.catch(error => {
        if (!this.#unwatched) this.log.warn(`config.json is not watched, but read every second: ${messageOf(error)}`)
        this.#unwatched = true
        return look()
      })
  }

  /** Reads one file again. A refused text is not kept: with it a plugin that starts later could not be given its values. */
  async reread(
    one: Followed,
    name: string,
    take: (text: string) => void,
    pending: () => readonly string[],
  ): Promise<void> {
    const { problem: before } = one
    try {
      take(await this.textOf(one.file, one.text))
    } catch (error) {
      one.problem = messageOf(error)
    }
    const { problem } = one
    if (problem !== undefined) {
      if (problem !== before) this.log.error(`${name} changes nothing: ${problem}`)
      return
    }
    if (before !== undefined) this.log.info(`${name} is valid again`)
    const waiting = pending()
    if (waiting.length > 0) this.log.warn(`${name}: ${waiting.join(', ')} wait for the next start`)
  }
}
