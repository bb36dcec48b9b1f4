import { runsCode, throws } from '../../../../kernel/kit/annotations/index.js'
import { created, noContent, type Route } from '../../../../kernel/plugin.js'
import * as schemas from '../../../../schemas/sessions.js'
import { MAX_FILE_BYTES } from '../../acp/api.js'
import { SessionErrors } from '../api.js'
import { attachmentToWire } from '../attachments/store.js'
import type { SessionsService } from '../service.js'
import { ONE, route } from './common.js'

/** Bytes of a form besides its file. */
const FORM_BYTES = 64 * 1024

const { session_not_found, attachment_not_found, attachment_invalid, attachment_too_large, attachment_type } =
  SessionErrors

/** Routes for prompt attachments. */
export const attachmentRoutes: readonly Route<SessionsService>[] = [
  route({
    method: 'POST',
    path: `${ONE}/attachments`,
    audited: false,
    summary: 'Upload a file for prompts of a session, as a form with one file',
    body: { as: 'stream', types: ['multipart/form-data'] },
    bodyLimit: MAX_FILE_BYTES + FORM_BYTES,
    headers: { 'Content-Type': { required: true } },
    with: [throws(session_not_found, attachment_invalid, attachment_too_large, attachment_type)],
    replies: { 201: schemas.AttachmentReply },
    handle: async (service, { params, body, headers }) => {
      const row = service.find(params.session_id, params.workspace_id)
      const stored = await service.context.attachments.take(row.id, headers['content-type'], body)
      return created({ attachment: attachmentToWire(stored) })
    },
  }),
  route({
    method: 'DELETE',
    path: `${ONE}/attachments/{attachment_id}`,
    audited: false,
    with: [runsCode(false), throws(session_not_found, attachment_not_found)],
    essential: true,
    summary: 'Delete an uploaded file',
    replies: { 204: null },
    handle: async (service, { params }) => {
      const row = service.find(params.session_id, params.workspace_id)
      await service.context.attachments.remove(row.id, params.attachment_id)
      return noContent()
    },
  }),
  route({
    method: 'GET',
    path: `${ONE}/attachments/{attachment_id}/bytes`,
    with: [throws(session_not_found, attachment_not_found)],
    summary: 'Download an uploaded file',
    replies: { 200: { as: 'bytes', types: ['application/octet-stream', '*/*'] } },
    handle: async (service, { params }) => {
      const { attachments, archive } = service.context
      const row = service.find(params.session_id, params.workspace_id)
      // The list of the files is not lent with the row of an archived session.
      await archive.restore(row.id)
      const found = attachments.get(row.id, params.attachment_id)
      const name = encodeURIComponent(found.name).replace(
        /[!'()*]/g,
        sign => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`,
      )
      const headers = {
        'content-type': found.mime_type,
        'content-length': String(found.bytes),
        // A download, so that an uploaded page never runs in the origin of the daemon.
        'content-disposition': `attachment; filename*=UTF-8''${name}`,
        'x-content-type-options': 'nosniff',
      }
      return { status: 200, body: attachments.bytes(found), headers }
    },
  }),
]
