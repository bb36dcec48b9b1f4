import { watch } from 'node:fs'
import { lstat } from 'node:fs/promises'
import { basename, dirname } from 'node:path'
import { Serial } from '../../../kernel/kit/serial.js'
import { type Clock, type Log, messageOf, type Scope } from '../../../kernel/plugin.js'
import type { TextFile } from '../files/api.js'
import type { Layer } from './layers.js'
import type { FileSource } from './source.js'

/** Milliseconds to gather a burst of writes, or a write by temporary file and rename, into one change. */
const SETTLE_MS = 100
/** Milliseconds to wait before an empty or missing file counts: it may be in the middle of a write. */
const EMPTY_MS = 1000
/** Milliseconds between reads when the file cannot be watched, because it is a link or a folder, or watching failed. */
const LOOK_MS = 1000
/** Milliseconds until watching begins, when the start is over. Changes until then are read too. */
const WATCH_AFTER_MS = 500

/** Reads the configuration file again whenever it is saved. An invalid text is not applied. */
export class Follower {
  #unwatched = false
  /** Reads and writes, one at a time. One must not run another: that would be a deadlock. */
  readonly turns = new Serial()

  constructor(
    private readonly source: FileSource,
    private readonly pending: () => readonly string[],
    private readonly clock: Clock,
    private readonly scope: Scope,
    private readonly log: Log,
  ) {}

  /** Follows the file until the signal aborts. */
  async follow(signal: AbortSignal): Promise<void> {
    await this.clock.sleep(WATCH_AFTER_MS, signal)
    while (!signal.aborted) {
      const changed = await this.#watch(signal)
      await this.reload().catch(() => {})
      await changed()
      if (!signal.aborted) await this.clock.sleep(SETTLE_MS, signal)
    }
  }

  /** Reads the file again. An invalid text is not applied, and becomes the `problem` of the state. */
  reload(): Promise<void> {
    return this.turns.run(() => this.reread(this.source, 'config.json', this.pending))
  }

  /** The text of a file. An emptied file is read again a second later, since it may be in the middle of a write. */
  async textOf(file: TextFile, known: string): Promise<string> {
    const { signal } = this.scope
    const text = (await file.read()) ?? ''
    if (text.trim() !== '' || known.trim() === '' || signal.aborted) return text
    await this.clock.sleep(EMPTY_MS, signal).catch(() => {})
    return signal.aborted ? known : ((await file.read()) ?? '')
  }

  /**
   * Watches for one change; the returned function resolves when it has occurred. The next change needs a new watch: the name may
   * then belong to another file, which this watch does not see. For a missing file its folder is watched.
   */
  async #watch(signal: AbortSignal): Promise<() => Promise<void>> {
    const { where } = this.source
    const pause = () => this.clock.sleep(LOOK_MS, signal).catch(() => {})
    const kind = await lstat(where).then(
      found => (found.isFile() ? 'file' : 'other'),
      ({ code }) => (code === 'ENOENT' ? 'missing' : 'other'),
    )
    if (kind === 'other') return pause
    const one = new AbortController()
    const change = new Promise<void>((resolve, reject) => {
      const watcher = watch(kind === 'file' ? where : dirname(where), { signal: AbortSignal.any([signal, one.signal]) })
      // A folder reports every file in it; without a name it may be any of them.
      watcher.on('change', (_event, changed) => {
        if (kind === 'file' || changed === null || changed === basename(where)) resolve()
      })
      watcher.once('close', () => resolve()).once('error', reject)
    }).finally(() => one.abort())
    change.catch(() => {}) // it may fail before it is waited for
    return () =>
      change.catch(error => {
        if (!this.#unwatched)
          this.log.warn(`config.json cannot be watched and is read every second instead: ${messageOf(error)}`)
        this.#unwatched = true
        return pause()
      })
  }

  /** Reads one file again. A refused text is not kept: a plugin that starts later could not get its values from it. */
  async reread(one: Layer, name: string, pending: () => readonly string[]): Promise<void> {
    const { problem: before } = one
    try {
      one.take(await this.textOf(one.file, one.text))
    } catch (error) {
      one.problem = messageOf(error)
    }
    const { problem } = one
    if (problem !== undefined) {
      if (problem !== before) this.log.error(`${name} is not applied: ${problem}`)
      return
    }
    if (before !== undefined) this.log.info(`${name} is valid again`)
    const waiting = pending()
    if (waiting.length > 0) this.log.warn(`${name}: ${waiting.join(', ')} wait for the next start`)
  }
}
