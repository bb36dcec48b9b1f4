import { createHash } from 'node:crypto'
import { lstat } from 'node:fs/promises'
import {
  type AgentContext,
  type ClientCapabilities,
  methods,
  type ReadTextFileRequest,
} from '@agentclientprotocol/sdk/unstable'
import { reasonOf } from '../text.js'
import { Refused, resolveInside, shownPath } from './paths.js'
import { readPlain, writePlain } from './plain-file.js'

/** Bytes of a file that may be read or written. */
export const MAX_FILE = 4 * 1024 * 1024

/** Digests of the files that the model has read, by canonical path: only unchanged ones may be edited. Kept in memory. */
export type ReadFiles = Map<string, string>

/** File access of a session, through the client if it offers the method, else directly. Never outside of the roots. */
export class Files {
  constructor(
    private readonly client: AgentContext,
    private readonly capabilities: ClientCapabilities,
    private readonly sessionId: string,
    readonly roots: readonly string[],
    private readonly read: ReadFiles,
    private readonly signal: AbortSignal,
  ) {}

  get clientReads(): boolean {
    return this.capabilities.fs?.readTextFile === true
  }

  /**
   * Canonical path inside of the workspace.
   * @throws {Refused}
   */
  resolve(wanted: unknown): Promise<string> {
    return resolveInside(this.roots, wanted)
  }

  shown(canonical: string): string {
    return shownPath(this.roots, canonical)
  }

  /**
   * The whole text of a file, which is then noted as read.
   * @throws {Refused} If it is too large or no text file.
   */
  async text(canonical: string): Promise<string> {
    const text = await this.#get(canonical)
    this.read.set(canonical, digest(text))
    return text
  }

  /**
   * The text of a file that was read and has not changed since.
   * @throws {Refused}
   */
  async unchanged(canonical: string): Promise<string> {
    const shown = this.shown(canonical)
    const known = this.read.get(canonical)
    if (known === undefined) throw new Refused(`${shown} has not been read yet; read it first, then edit it`)
    const text = await this.#get(canonical)
    if (digest(text) !== known) throw new Refused(`${shown} has changed since it was read; read it again, then edit it`)
    return text
  }

  /** Whether the path exists. */
  async exists(canonical: string): Promise<boolean> {
    return (await lstat(canonical).catch(() => undefined)) !== undefined
  }

  /**
   * Replaces a whole file and notes it as read.
   * @throws {Refused}
   */
  async write(canonical: string, text: string): Promise<void> {
    this.signal.throwIfAborted()
    if (Buffer.byteLength(text) > MAX_FILE) throw new Refused(`a file has at most ${MAX_FILE} bytes`)
    if (this.capabilities.fs?.writeTextFile === true) {
      const params = { sessionId: this.sessionId, path: canonical, content: text }
      await this.#guarded(() => this.client.request(methods.client.fs.writeTextFile, params, this.#cancellable()))
    } else {
      // A folder may have become a symlink since the path was checked.
      if ((await this.resolve(canonical)) !== canonical) throw new Refused(`${this.shown(canonical)} has moved`)
      await writePlain(canonical, text)
    }
    this.read.set(canonical, digest(text))
  }

  /**
   * Checks that files may be read, by a read of one line through the client if it offers the method.
   * @throws {Refused}
   */
  async mayRead(canonical: string): Promise<void> {
    if (!this.clientReads) return
    const params = { sessionId: this.sessionId, path: canonical, line: 1, limit: 1 }
    await this.#guarded(() => this.client.request(methods.client.fs.readTextFile, params, this.#cancellable()))
  }

  async #get(canonical: string): Promise<string> {
    this.signal.throwIfAborted()
    const shown = this.shown(canonical)
    const stats = await lstat(canonical).catch(() => undefined)
    if (!stats) throw new Refused(`${shown} does not exist`)
    if (!stats.isFile()) throw new Refused(`${shown} is ${stats.isDirectory() ? 'a folder' : 'not a regular file'}`)
    if (stats.size > MAX_FILE)
      throw new Refused(`${shown} has ${stats.size} bytes; ${MAX_FILE} can be read. Search it instead`)
    let text: string
    if (this.clientReads) {
      const params: ReadTextFileRequest = { sessionId: this.sessionId, path: canonical }
      const { content } = await this.#guarded(() =>
        this.client.request(methods.client.fs.readTextFile, params, this.#cancellable()),
      )
      text = content
    } else {
      text = (await readPlain(canonical, MAX_FILE)).toString()
    }
    if (text.includes('\0') || text.includes('\uFFFD')) throw new Refused(`${shown} is not UTF-8 text`)
    return text
  }

  async #guarded<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (error) {
      this.signal.throwIfAborted()
      throw new Refused(`the client refuses: ${reasonOf(error)}`)
    }
  }

  #cancellable() {
    return { cancellationSignal: this.signal, stopWaitingOnCancel: true }
  }
}

const digest = (text: string) => createHash('sha256').update(text).digest('base64')
