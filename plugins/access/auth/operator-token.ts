import { hash, timingSafeEqual } from 'node:crypto'
import { stat } from 'node:fs/promises'
import { readRegularFile } from '../../../kernel/kit/read-file.js'
import { replaceFile, systemDisk } from '../../../kernel/platform.js'
import { type Ids, type Log, messageOf } from '../../../kernel/plugin.js'

const MAX_BYTES = 4096
/** What this program writes is longer; a person may have put a token of another program there. */
const USABLE = /^[\x21-\x7e]{32,200}$/

/** SHA-256 of a secret: what is kept of it and compared. */
export const digestOf = (secret: string): Buffer => hash('sha256', secret, 'buffer')

/** The secret that stands for the operator over TCP. It lies in a file that only the daemon's user can read. */
export class OperatorToken {
  #bytes: Buffer | undefined

  constructor(
    private readonly file: string,
    private readonly ids: Ids,
    private readonly log: Log,
    /** Called with each token before it counts or is written: from then on it is hidden. */
    private readonly hide: (value: string) => void,
  ) {}

  /** Takes the token of the file, or makes one: where there is none, and where others may know it. */
  async open(): Promise<void> {
    const unusable = await this.#read()
    if (unusable === undefined) return
    if (unusable !== '') this.log.warn(`a new operator token is made, for ${unusable}`)
    await this.rotate()
  }

  /** Makes another token, which counts when this resolves; the one before counts no more. */
  async rotate(): Promise<void> {
    const value = `svc_op_${this.ids.hex(32)}`
    this.hide(value)
    await replaceFile(systemDisk(), this.file, Buffer.from(`${value}\n`), 0o600)
    this.#take(value)
  }

  /** In constant time; how long the token is, is no secret. */
  matches(given: string): boolean {
    const bytes = Buffer.from(given)
    return this.#bytes?.length === bytes.length && timingSafeEqual(bytes, this.#bytes)
  }

  #take(value: string): void {
    this.#bytes = Buffer.from(value)
  }

  /** Why what is in the file cannot be used; empty when there is no file. */
  async #read(): Promise<string | undefined> {
    try {
      const bytes = await readRegularFile(this.file, { maxBytes: MAX_BYTES, links: 'refuse' })
      if (!bytes) return ''
      const { mode } = await stat(this.file)
      if ((mode & 0o077) !== 0) return `other users could read ${this.file}`
      const value = bytes.toString().trim()
      if (!USABLE.test(value)) return `${this.file} holds no token of 32 to 200 characters`
      this.hide(value)
      this.#take(value)
      return undefined
    } catch (error) {
      return `${this.file} cannot be read: ${messageOf(error)}`
    }
  }
}
