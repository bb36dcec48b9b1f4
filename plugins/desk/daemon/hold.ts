import { existsSync } from 'node:fs'
import fs from 'node:fs/promises'
import { command } from '../../../kernel/kit/commands/command-line.js'
import { jsonFile } from '../../../kernel/kit/json-file.js'
import { systemDisk } from '../../../kernel/platform.js'
import type { Home } from '../../../kernel/plugin.js'
import { HeldHome } from '../../../schemas/daemon/backup.js'
import { HELD_AT_START, HOLD_FILE } from './api.js'

/** The reason for safe mode; a confirmed home needs only a restart. */
export const safeModeReason = (why: string | undefined, isHeld: boolean): string | undefined =>
  why === HELD_AT_START && !isHeld
    ? `the daemon started while the home was held; run ${command('daemon restart')}`
    : why

/** The hold of a home, kept in a file so that it survives restarts until a person ends it. */
export class Hold {
  #isHeld: boolean
  /** The backup that the home was restored from; undefined if the mark does not say. */
  about: HeldHome | undefined
  #release: () => void = () => {}
  readonly #released = new Promise<void>(resolve => {
    this.#release = resolve
  })

  constructor(private readonly home: Home) {
    this.#isHeld = existsSync(home.path(HOLD_FILE))
  }

  get isHeld(): boolean {
    return this.#isHeld
  }

  async start(): Promise<void> {
    if (!this.#isHeld) return
    const about = await jsonFile(this.home.path(HOLD_FILE), HeldHome, null)
      .read()
      .catch(() => null)
    this.about = about ?? undefined
  }

  async released(signal: AbortSignal): Promise<boolean> {
    if (!this.#isHeld) return false
    let abort = (): void => {}
    const aborted = new Promise<void>(resolve => {
      abort = resolve
    })
    signal.addEventListener('abort', abort, { once: true })
    if (!signal.aborted) await Promise.race([this.#released, aborted])
    signal.removeEventListener('abort', abort)
    return true
  }

  /** Ends the hold. Durable when it resolves. */
  async end(): Promise<void> {
    await fs.rm(this.home.path(HOLD_FILE), { force: true })
    await systemDisk().fsyncDir(this.home.root)
    this.#isHeld = false
    this.about = undefined
    this.#release()
  }
}
