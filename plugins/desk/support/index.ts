import { describe, runsCode, throws } from '../../../kernel/kit/annotations/index.js'
import { command } from '../../../kernel/kit/commands/command-line.js'
import { errorBody } from '../../../kernel/platform.js'
import { accepted, definePlugin, type Fault, ok, routeOf } from '../../../kernel/plugin.js'
import { CreateSupportBundleBody, SupportBundleQuery, SupportOperationReply } from '../../../schemas/daemon/support.js'
import { ErrorBody } from '../../../schemas/kernel/error.js'
import { undo } from '../changes/api.js'
import { finding } from '../daemon/api.js'
import { SupportErrors } from './api.js'
import { commands } from './command-list.js'
import { needs } from './needs.js'
import type { SupportService } from './service.js'

const route = routeOf<SupportService>(describe('Support bundles'))

/** Adds a diagnostic to the refusal of a request without consent, for display to a person. */
function withDiagnostic(fault: Fault): ErrorBody {
  const body = errorBody(fault)
  if (fault.code !== SupportErrors.bundle_consent_required.code) return body
  const diagnostic = finding({
    id: 'support.consent',
    code: fault.code,
    category: 'support',
    severity: 'error',
    title: 'Consent is missing',
    message: 'a support bundle holds names of files, sessions and agents, and the log; show this to a person first',
    suggested_command: command('support bundle'),
  })
  return { ...body, diagnostic }
}

/** Archives for diagnosing a daemon, without secrets. */
export default definePlugin({
  name: 'support',
  version: '0.1.0',
  requires: needs,
  service: () => import('./service.js').then(module => module.SupportService),
}).surface({
  errors: [SupportErrors],
  services: [{ name: 'retention', run: (service, signal) => service.retain(signal) }],
  commands,
  routes: [
    route({
      method: 'POST',
      path: '/api/support/bundles',
      summary: 'Make a support bundle',
      body: CreateSupportBundleBody,
      privileged: true,
      replies: { 202: SupportOperationReply },
      faults: { reply: ErrorBody, body: withDiagnostic },
      with: [
        undo({ by: 'never', why: 'a bundle changes nothing; it is deleted by itself' }),
        runsCode(false),
        throws(SupportErrors.bundle_consent_required, SupportErrors.support_queue_full),
      ],
      handle: (service, { body }) => accepted({ operation: service.create(body) }),
    }),
    route({
      method: 'GET',
      path: '/api/support/bundles/{operation_id}',
      summary: 'Show whether a support bundle is ready',
      query: SupportBundleQuery,
      replies: { 200: SupportOperationReply },
      with: [throws(SupportErrors.support_bundle_not_found)],
      handle: async (service, { params, query, signal }) =>
        ok({ operation: await service.show(params.operation_id, query.wait === true, signal) }),
    }),
    route({
      method: 'GET',
      path: '/api/support/bundles/{operation_id}/download',
      summary: 'Download a support bundle',
      privileged: true,
      contentType: 'application/gzip',
      replies: { 200: { as: 'bytes', types: ['application/gzip'] } },
      with: [throws(SupportErrors.support_bundle_not_found, SupportErrors.support_bundle_not_ready)],
      handle: async (service, { params }) => {
        const { name, bytes } = await service.download(params.operation_id)
        const headers = {
          'content-length': String(bytes.length),
          'content-disposition': `attachment; filename="${name}"`,
          'x-content-type-options': 'nosniff',
        }
        return { status: 200, body: bytes, headers }
      },
    }),
  ],
})
