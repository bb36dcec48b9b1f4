import type { Readable } from 'node:stream'
import { messageOf } from '../../../../kernel/plugin.js'
import { SessionErrors } from '../api.js'

/** Maximum bytes and lines of the headers of a part. */
const MAX_HEAD = 8192
const MAX_LINES = 20

/** The headers of the file part. */
export interface PartHead {
  readonly filename: string | undefined
  /** Without parameters, lower-case. */
  readonly type: string
}

/** The single file of a form while it is received. */
export interface FormFile {
  readonly head: PartHead
  readonly data: AsyncIterable<Buffer>
  /** Resolves at a valid end of the form; rejects with `attachment_invalid` (400). */
  readonly ended: Promise<void>
}

/**
 * Reads a form up to its file. A caller that stops before the end has to destroy the body.
 * @throws Fault `attachment_invalid` (400) for a body that is not a form with one file
 */
export async function readForm(body: Readable, contentType: string | undefined): Promise<FormFile> {
  const parser = await parserOf(contentType)
  let arriving: Readable | undefined
  const ended = new Promise<void>((resolve, reject) => {
    const refuse = (why: string) => {
      const fault = SessionErrors.attachment_invalid(why)
      reject(fault)
      arriving?.destroy(fault)
    }
    parser.once('finish', resolve)
    parser.once('error', error => refuse(`the form cannot be read: ${messageOf(error)}`))
    for (const limit of ['partsLimit', 'filesLimit', 'fieldsLimit'] as const)
      parser.once(limit, () => refuse('a form must contain exactly one file'))
    body.once('error', error => refuse(`the form did not arrive: ${messageOf(error)}`))
    body.once('close', () => {
      if (!body.readableEnded) refuse('the form ends before its last boundary')
    })
  })
  ended.catch(() => {}) // an early rejection must not become an unhandled rejection
  const file = new Promise<Omit<FormFile, 'ended'>>(resolve => {
    parser.on('file', (_field, data, filename, _encoding, type) => {
      arriving = data
      data.on('error', () => {}) // the parser reports it as well
      resolve({ head: { filename, type: type.toLowerCase() }, data })
    })
  })
  body.pipe(parser)
  const empty = ended.then(() => Promise.reject(SessionErrors.attachment_invalid('the form has no file')))
  return { ...(await Promise.race([file, empty])), ended }
}

async function parserOf(contentType: string | undefined) {
  const { Busboy } = await import('@fastify/busboy')
  try {
    return new Busboy({
      headers: { 'content-type': contentType ?? '' },
      isPartAFile: () => true,
      limits: { parts: 1, files: 1, fields: 0, headerSize: MAX_HEAD, headerPairs: MAX_LINES },
    })
  } catch (error) {
    throw SessionErrors.attachment_invalid(`this is not a valid form: ${messageOf(error)}`)
  }
}
