import { createHash, type Hash } from 'node:crypto'
import path from 'node:path'
import type { Readable } from 'node:stream'
import { column, type RowOf, table } from '../../../../kernel/kit/table.js'
import { clip } from '../../../../kernel/kit/text.js'
import { type Disk, isFull, systemDisk, writeAll } from '../../../../kernel/platform.js'
import { type Db, iso, messageOf } from '../../../../kernel/plugin.js'
import type { PromptAttachment } from '../../../../schemas/sessions.js'
import { type AttachmentKind, kindOf, looksLike, MAX_FILE_BYTES, sizeOf } from '../../acp/api.js'
import { SessionErrors } from '../api.js'
import type { K } from '../needs.js'
import { type FormFile, type PartHead, readForm } from './form.js'

/** Maximum number and total bytes of the files of one session. */
const MAX_FILES = 100
const MAX_ALL = 200 * 1024 * 1024
const MAX_NAME = 200
/** First bytes of a file, used to check its type. */
const HEAD_BYTES = 64 * 1024
const PAGE = 64 * 1024

const { integer, text, time } = column

export const ATTACHMENT_TABLE = `
CREATE TABLE sessions_attachment (
  id TEXT PRIMARY KEY NOT NULL,
  session_id TEXT NOT NULL,
  name TEXT NOT NULL,
  kind TEXT NOT NULL,
  mime_type TEXT NOT NULL,
  bytes INTEGER NOT NULL,
  sha256 TEXT NOT NULL,
  width INTEGER NOT NULL,
  height INTEGER NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX sessions_attachment_session ON sessions_attachment (session_id, created_at);`

/** A row of sessions_attachment; its bytes are in a file named after the ID in the folder of the session. */
export const attachmentRows = table('sessions_attachment', {
  id: text(),
  session_id: text(),
  name: text(),
  kind: text<AttachmentKind>(),
  mime_type: text(),
  bytes: integer(),
  /** Hex. */
  sha256: text(),
  /** Pixels of an image; 0 where they are not known. */
  width: integer(),
  height: integer(),
  created_at: time(),
})
export type AttachmentRow = RowOf<typeof attachmentRows>

/** An attachment under its names on the wire. */
export function attachmentToWire(row: AttachmentRow): PromptAttachment & { readonly created_at: string } {
  const { session_id: _session, created_at, ...wire } = row
  return { ...wire, created_at: iso(created_at) }
}

/** The files attached to prompts. They are checked while they arrive and stored under an ID, never under the uploaded name. */
export class Attachments {
  readonly #disk: Disk = systemDisk()
  /** Bytes of running uploads by session, so that concurrent uploads count against the limit. */
  readonly #arriving = new Map<string, number>()

  constructor(
    private readonly kernel: Pick<K, 'db' | 'home' | 'ids' | 'clock' | 'log'>,
    private readonly db: Db = kernel.db,
  ) {}

  /** The files of a session in the order of their upload. */
  list(sessionId: string): AttachmentRow[] {
    return attachmentRows.all(this.db, { session_id: sessionId }, 'ORDER BY created_at, id')
  }

  /** The journal form of the files of a prompt. */
  named(sessionId: string, ids: readonly string[]) {
    const wanted = ids.length === 0 ? [] : this.list(sessionId).filter(({ id }) => ids.includes(id))
    return wanted.map(({ id, name, mime_type, bytes }) => ({ id, name, mime_type, bytes }))
  }

  /** Throws `attachment_not_found` (404). */
  get(sessionId: string, id: string): AttachmentRow {
    const row = attachmentRows.get(this.db, { id, session_id: sessionId })
    if (!row) throw SessionErrors.attachment_not_found(`no attachment ${clip(id, 100)} in this session`)
    return row
  }

  /**
   * Stores the single file of a form. A refused or incomplete file leaves nothing behind.
   * @throws Fault `attachment_invalid` (400), `attachment_too_large` (413), `attachment_type` (415)
   */
  async take(sessionId: string, contentType: string | undefined, body: Readable): Promise<AttachmentRow> {
    try {
      return await this.store(sessionId, () => readForm(body, contentType))
    } finally {
      body.destroy()
    }
  }

  /** Stores a file; throws as {@link take} does. @param open called when there is room for one */
  async store(sessionId: string, open: () => Promise<FormFile>): Promise<AttachmentRow> {
    const stored = this.list(sessionId)
    const sum = stored.reduce((all, { bytes }) => all + bytes, 0)
    if (stored.length >= MAX_FILES) {
      throw SessionErrors.attachment_too_large(`this session has ${MAX_FILES} attachments already`)
    }
    const room = MAX_ALL - sum - (this.#arriving.get(sessionId) ?? 0)
    const reserved = Math.min(MAX_FILE_BYTES, Math.max(0, room))
    this.#arriving.set(sessionId, (this.#arriving.get(sessionId) ?? 0) + reserved)
    const id = this.kernel.ids.id('att')
    const file = this.#file(sessionId, id)
    try {
      const written = await this.#write(file, reserved, await open())
      const row: AttachmentRow = { id, session_id: sessionId, created_at: this.kernel.clock.now(), ...written }
      await this.kernel.db.tx(t => attachmentRows.insert(t, row))
      return row
    } catch (error) {
      await this.#unlink(file)
      throw isFull(error) ? SessionErrors.attachment_too_large('the disk is full', { cause: error }) : error
    } finally {
      const rest = (this.#arriving.get(sessionId) ?? 0) - reserved
      if (rest > 0) this.#arriving.set(sessionId, rest)
      else this.#arriving.delete(sessionId)
    }
  }

  async remove(sessionId: string, id: string): Promise<void> {
    this.get(sessionId, id)
    await this.kernel.db.tx(t => t.run('DELETE FROM sessions_attachment WHERE id = ?', [id]))
    await this.#unlink(this.#file(sessionId, id))
  }

  /** The bytes in pages. Throws `attachment_not_found` when the file is gone. */
  async *bytes({ session_id, id }: AttachmentRow): AsyncGenerator<Uint8Array> {
    const handle = await this.#open(this.#file(session_id, id))
    try {
      for (let at = 0; ; ) {
        const page = new Uint8Array(PAGE)
        const read = await this.#disk.read(handle, page, at)
        if (read === 0) return
        at += read
        yield page.subarray(0, read)
      }
    } finally {
      await this.#disk.close(handle)
    }
  }

  async whole(row: AttachmentRow): Promise<Buffer> {
    const pages: Uint8Array[] = []
    for await (const page of this.bytes(row)) pages.push(page)
    return Buffer.concat(pages)
  }

  async #write(file: string, room: number, form: FormFile) {
    const part = new Arriving(form.head)
    await this.#disk.mkdir(path.dirname(file))
    const handle = await this.#disk.open(file, 'replace', 0o600)
    try {
      for await (const data of form.data) {
        if (part.bytes + data.length > room) {
          throw SessionErrors.attachment_too_large(
            `a file is at most ${MAX_FILE_BYTES} bytes, those of a session at most ${MAX_ALL}`,
          )
        }
        await writeAll(this.#disk, handle, data, part.bytes)
        part.take(data)
      }
      await form.ended
      const found = part.end()
      await this.#disk.fsync(handle)
      return found
    } finally {
      await this.#disk.close(handle)
    }
  }

  async #open(file: string): Promise<number> {
    try {
      return await this.#disk.open(file, 'read')
    } catch (error) {
      throw SessionErrors.attachment_not_found('the data of this attachment is lost', { cause: error })
    }
  }

  async #unlink(file: string): Promise<void> {
    try {
      await this.#disk.unlink(file)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return
      this.kernel.log.warn('the file of an attachment could not be removed', { file, error: messageOf(error) })
    }
  }

  #file(sessionId: string, id: string): string {
    return this.kernel.home.path('sessions', sessionId, 'attachments', id)
  }
}

/** A file during its upload: counts, hashes and checks its type. */
class Arriving {
  bytes = 0
  readonly #hash: Hash = createHash('sha256')
  readonly #name: string
  readonly #kind: AttachmentKind
  readonly #text: InstanceType<typeof TextDecoder> | undefined
  #head: Buffer = Buffer.alloc(0)

  /** Throws for an invalid name or type. */
  constructor(private readonly part: PartHead) {
    const kind = kindOf(part.type)
    if (!kind) throw SessionErrors.attachment_type(`a prompt cannot carry ${clip(part.type, 100)}`)
    this.#kind = kind
    this.#name = nameOf(part.filename)
    if (kind === 'text') this.#text = new TextDecoder('utf-8', { fatal: true })
  }

  take(data: Buffer): void {
    this.bytes += data.length
    this.#hash.update(data)
    if (this.#head.length < HEAD_BYTES) this.#head = Buffer.concat([this.#head, data]).subarray(0, HEAD_BYTES)
    this.#decode(data, true)
  }

  end(): Pick<AttachmentRow, 'name' | 'kind' | 'mime_type' | 'bytes' | 'sha256' | 'width' | 'height'> {
    this.#decode(Buffer.alloc(0), false)
    const { type } = this.part
    if (this.bytes === 0) throw SessionErrors.attachment_invalid('the file is empty')
    if (!looksLike(type, this.#head)) throw SessionErrors.attachment_type(`the bytes of this file are not ${type}`)
    const sha256 = this.#hash.digest('hex')
    return {
      name: this.#name,
      kind: this.#kind,
      mime_type: type,
      bytes: this.bytes,
      sha256,
      ...sizeOf(type, this.#head),
    }
  }

  #decode(data: Buffer, more: boolean): void {
    try {
      const text = this.#text?.decode(data, { stream: more })
      if (!text?.includes('\0')) return
    } catch {
      // The throw below reports it.
    }
    throw SessionErrors.attachment_type(
      `the bytes of this file are not UTF-8 text, although its type is ${this.part.type}`,
    )
  }
}

/** The last part of an uploaded name: its folder on another machine is private. */
function nameOf(filename: string | undefined): string {
  const name = (filename ?? '').split(/[\\/]/).at(-1)?.trim() ?? ''
  // biome-ignore lint/suspicious/noControlCharactersInRegex: those are what is refused
  if (name === '' || name === '.' || name === '..' || name.length > MAX_NAME || /[\u0000-\u001f\u007f]/.test(name)) {
    throw SessionErrors.attachment_invalid(
      `a file has a name of 1 to ${MAX_NAME} characters without control characters`,
    )
  }
  return name
}
