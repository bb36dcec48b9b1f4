import { hash, timingSafeEqual } from 'node:crypto'
import { stat } from 'node:fs/promises'
import { readRegularFile } from '../../../kernel/kit/read-file.js'
import { replaceFile, systemDisk } from '../../../kernel/platform.js'
import { type Ids, type Log, messageOf } from '../../../kernel/plugin.js'

const MAX_BYTES = 4096
/** A usable token. Generated ones are longer, but a person may have stored another program's token there. */
const USABLE = /^[\x21-\x7e]{32,200}$/

/** SHA-256 of a secret, for storage and comparison. */
export const digestOf = (secret: string): Buffer => hash('sha256', secret, 'buffer')

/** The token that authenticates the operator over TCP. Its file is readable only by the daemon's user. */
export class OperatorToken {
  #bytes: Buffer | undefined

  constructor(
    private readonly file: string,
    private readonly ids: Ids,
    private readonly log: Log,
    /** Hides a token from all output; called before the token is written or becomes valid. */
    private readonly hide: (value: string) => void,
  ) {}

  /** Loads the token from the file. Creates a new one if the file is missing, invalid, or readable by other users. */
  async open(): Promise<void> {
    const unusable = await this.#read()
    if (unusable === undefined) return
    if (unusable !== '') this.log.warn(`a new operator token is generated, because ${unusable}`)
    await this.rotate()
  }

  /** Replaces the token. The new one is valid once this resolves; the old one is not any more. */
  async rotate(): Promise<void> {
    const value = `svc_op_${this.ids.hex(32)}`
    this.hide(value)
    await replaceFile(systemDisk(), this.file, Buffer.from(`${value}\n`), 0o600)
    this.#take(value)
  }

  /** Compares in constant time; the length of the token is not secret. */
  matches(candidate: string): boolean {
    const bytes = Buffer.from(candidate)
    return this.#bytes?.length === bytes.length && timingSafeEqual(bytes, this.#bytes)
  }

  #take(value: string): void {
    this.#bytes = Buffer.from(value)
  }

  /** Why the content of the file is unusable; empty if there is no file. */
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
