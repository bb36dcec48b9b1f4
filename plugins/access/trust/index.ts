import { cli, describe, show, throws, tool } from '../../../kernel/kit/annotations/index.js'
import { definePlugin, noContent, ok, routeOf } from '../../../kernel/plugin.js'
import { PutTrustBody, WorkspaceTrustReply } from '../../../schemas/workspaces/trust.js'
import { undo } from '../../desk/changes/api.js'
import { REFERENCE_ERRORS, Workspaces } from '../../desk/workspaces/api.js'
import { Trust, TrustErrors } from './api.js'
import { needs } from './needs.js'
import { type TrustService, trustTable } from './service.js'
import { trustUndo } from './undo.js'

const route = routeOf<TrustService>(describe('Workspaces'))
const workspace = { name: 'workspace', summary: 'id, name or path of a workspace' } as const

/** Decides whether the files of a workspace may run code. */
export default definePlugin({
  name: 'trust',
  version: '0.1.0',
  requires: needs,
  provides: Trust,
  service: () => import('./service.js').then(m => m.TrustService),
}).surface({
  errors: [TrustErrors],
  tables: [{ id: '001-workspace', sql: trustTable }],
  owned: [{ by: Workspaces, table: 'trust_workspace', column: 'workspace_id' }],
  commands: [
    {
      path: 'workspace trust',
      summary: 'Trust the current files of a workspace to run code',
      args: [workspace],
      load: () => import('./commands.js'),
    },
  ],
  routes: [
    route({
      method: 'GET',
      path: '/api/workspaces/{id}/trust',
      summary: 'Show whether the files of a workspace may run code',
      replies: { 200: WorkspaceTrustReply },
      with: [
        throws(TrustErrors.trust_unreadable, ...REFERENCE_ERRORS),
        cli('workspace trust-status', {
          args: [{ ...workspace, name: 'id', type: 'workspace' }],
          view: show(WorkspaceTrustReply, 'trust', [
            'state',
            'files~list',
            'trusted_at~time',
            { of: 'trusted_by', header: 'By' },
            'digest',
          ]),
        }),
        tool('workspace_trust_status', ['workspace']),
      ],
      handle: async (service, { params }) => ok({ trust: await service.of(await service.find(params.id)) }),
    }),
    route({
      method: 'PUT',
      path: '/api/workspaces/{id}/trust',
      with: [undo(trustUndo), throws(TrustErrors.trust_changed, TrustErrors.trust_unreadable, ...REFERENCE_ERRORS)],
      summary: 'Trust the files of a workspace at a digest',
      body: PutTrustBody,
      privileged: true,
      replies: { 200: WorkspaceTrustReply },
      handle: async (service, { params, body, actor }) =>
        ok({ trust: await service.grant(await service.find(params.id), body.digest, actor) }),
    }),
    route({
      method: 'DELETE',
      path: '/api/workspaces/{id}/trust',
      summary: 'Revoke the trust in a workspace',
      privileged: true,
      essential: true,
      replies: { 204: null },
      with: [
        undo(trustUndo),
        throws(...REFERENCE_ERRORS),
        cli('workspace untrust', {
          args: [{ ...workspace, name: 'id', type: 'workspace' }],
          done: 'not trusted any more: {id}',
        }),
      ],
      handle: async (service, { params }) => {
        await service.revoke(await service.find(params.id))
        return noContent()
      },
    }),
  ],
})
