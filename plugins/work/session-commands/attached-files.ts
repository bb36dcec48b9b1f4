import { randomBytes } from 'node:crypto'
import path from 'node:path'
import { readRegularFile } from '../../../kernel/kit/read-file.js'
import { Fault, messageOf } from '../../../kernel/plugin.js'
import type { AttachmentReply } from '../../../schemas/sessions.js'
import { kindOf, MAX_FILE_BYTES } from '../acp/api.js'
import type { TaskContext } from './task-context.js'

/** Maximum number of files of one prompt. */
const MAX_FILES = 10

/** Content types of attachments by file extension; other files are sent as text, or refused. */
const TYPES: Readonly<Record<string, string>> = {
  '.png': 'image/png',
  '.jpg': 'image/jpeg',
  '.jpeg': 'image/jpeg',
  '.gif': 'image/gif',
  '.webp': 'image/webp',
  '.pdf': 'application/pdf',
  '.mp3': 'audio/mpeg',
  '.wav': 'audio/wav',
  '.ogg': 'audio/ogg',
  '.flac': 'audio/flac',
  '.json': 'application/json',
  '.md': 'text/markdown',
  '.html': 'text/html',
  '.csv': 'text/csv',
}

/** A file named with `--attach`. */
export interface AttachedFile {
  readonly name: string
  readonly type: string
  readonly bytes: Buffer
}

/**
 * Reads the files of `--attach` before anything else happens. A file that cannot be sent ends the command: `usage`, or
 * `attachment_not_found`.
 */
export async function attachedFiles({ lists, cwd, fault }: TaskContext): Promise<readonly AttachedFile[]> {
  const named = lists?.attach ?? []
  if (named.length > MAX_FILES) {
    fault('usage', `--attach was given ${named.length} times, a prompt has at most ${MAX_FILES} files`)
  }
  const refuse = (why: string) => fault('usage', why, 'svc run --attach <file> "What is in it?"')
  const files: AttachedFile[] = []
  for (const text of named) {
    const file = path.resolve(cwd, text)
    const bytes = await readRegularFile(file, { maxBytes: MAX_FILE_BYTES }).catch(error => {
      if (!(error instanceof Fault)) return refuse(`--attach ${text}: ${messageOf(error)}`)
      const isLarge = error.code === 'file_too_large'
      return refuse(
        `--attach ${text}: ${isLarge ? `it is larger than ${MAX_FILE_BYTES >> 20} MiB` : 'it is not a regular file'}`,
      )
    })
    if (bytes === undefined) {
      return fault('attachment_not_found', `--attach ${text}: there is no such file`, `ls ${path.dirname(file)}`)
    }
    if (bytes.length === 0) refuse(`--attach ${text}: it is empty`)
    const type = TYPES[path.extname(file).toLowerCase()] ?? (isText(bytes) ? 'text/plain' : '')
    if (kindOf(type) === undefined) refuse(`--attach ${text}: it is not a text, image, audio or PDF file`)
    files.push({ name: path.basename(file), type, bytes })
  }
  return files
}

/** Stores files for a prompt of the session at this path; resolves to their IDs, in order. */
export async function sendFiles(
  { client }: Pick<TaskContext, 'client'>,
  base: string,
  files: readonly AttachedFile[],
): Promise<string[]> {
  const ids: string[] = []
  for (const file of files) {
    const boundary = randomBytes(24).toString('hex')
    const headers = { 'content-type': `multipart/form-data; boundary=${boundary}` }
    const reply = (await client.request('POST', `${base}/attachments`, formOf(file, boundary), {
      headers,
    })) as AttachmentReply
    ids.push(reply.attachment.id)
  }
  return ids
}

/** A form with this one file. */
function formOf({ name, type, bytes }: AttachedFile, boundary: string): Buffer {
  // A line break would end the header line.
  const quoted = name.replace(/[\r\n]/g, ' ').replace(/[\\"]/g, sign => `\\${sign}`)
  const head = `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="${quoted}"\r\nContent-Type: ${type}\r\n\r\n`
  return Buffer.concat([Buffer.from(head), bytes, Buffer.from(`\r\n--${boundary}--\r\n`)])
}

function isText(bytes: Buffer): boolean {
  if (bytes.includes(0)) return false
  try {
    new TextDecoder('utf-8', { fatal: true }).decode(bytes)
    return true
  } catch {
    return false
  }
}
