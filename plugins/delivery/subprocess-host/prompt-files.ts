import * as v from 'valibot'
import { checkedParams } from './host-call.js'

/** Files in one prompt. */
const MAX_FILES = 10

const Files = v.pipe(
  v.array(
    v.union([
      v.string(),
      v.strictObject({
        name: v.pipe(v.string(), v.minLength(1), v.maxLength(200)),
        mime_type: v.pipe(v.string(), v.regex(/^[\w.+-]{1,100}\/[\w.+-]{1,100}$/, 'a type like image/png')),
        data: v.pipe(v.string(), v.base64()),
      }),
    ]),
  ),
  v.maxLength(MAX_FILES),
)
const WithFiles = v.looseObject({ attachments: v.optional(Files) })

/** A file in a prompt, as bytes. */
export interface PromptFile {
  readonly name: string
  readonly mimeType: string
  readonly data: Buffer
}

/** The files of a prompt: ids of stored files, or bytes. @throws RpcError `invalid_params` */
export function filesOf(params: object): readonly (string | PromptFile)[] {
  const { attachments = [] } = checkedParams(WithFiles, params)
  return attachments.map(file =>
    typeof file === 'string'
      ? file
      : { name: file.name, mimeType: file.mime_type, data: Buffer.from(file.data, 'base64') },
  )
}

/** The multipart form of the attachment route; the file must not contain `boundary`. */
export function formOf({ name, mimeType, data }: PromptFile, boundary: string) {
  const quoted = name.replace(/["\\\p{Cc}]/gu, '_')
  const head = `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="${quoted}"\r\nContent-Type: ${mimeType}\r\n\r\n`
  return {
    headers: { 'content-type': `multipart/form-data; boundary=${boundary}` },
    body: Buffer.concat([Buffer.from(head), data, Buffer.from(`\r\n--${boundary}--\r\n`)]),
  }
}
