import { cli, columnsOf, describe, show, throws, tool, withTable } from '../../../kernel/kit/annotations/index.js'
import { type Actor, definePlugin, KernelErrors, ok, routeOf, surfaceOf } from '../../../kernel/plugin.js'
import {
  AuditQuery,
  AuditReply,
  VerifyAuditQuery,
  VerifyAuditReply,
  WhyQuery,
  WhyReply,
  type WhyStep,
} from '../../../schemas/daemon/audit.js'
import { Configuration } from '../configuration/api.js'
import { Events } from '../events/api.js'
import { AuditErrors, AuditedEvents } from './api.js'
import { auditMigrations } from './chain.js'
import { needs } from './needs.js'
import type { AuditService } from './service.js'

const route = routeOf<AuditService>(describe('Audit'))
const { tap } = surfaceOf<AuditService>()

/**
 * The audit covers all workspaces and sources, so a caller that is limited to some of them may not read it. @throws Fault
 * `forbidden`
 */
function mayRead({ kind, maxScope }: Actor): void {
  if (kind === 'extension' || maxScope?.kind === 'workspace')
    throw KernelErrors.forbidden('the audit covers the whole daemon; this caller may see only a part of it')
}

/** Records each change with its author, time and request in a hash chain, and traces causes. */
export default definePlugin({
  name: 'audit',
  version: '0.1.0',
  requires: needs,
  service: () => import('./service.js').then(module => module.AuditService),
}).surface({
  declares: [AuditedEvents],
  errors: [AuditErrors],
  tables: auditMigrations,
  hooks: {
    known: service => service.known(),
    admit: (service, incoming, to) => service.admit(incoming, to),
    handled: (service, handled) => service.handled(handled),
    written: (service, t, written) => service.written(t, written),
  },
  taps: [
    tap(
      Events,
      events => events.written,
      service => (t, event) => service.onEvent(t, event),
    ),
    tap(
      Configuration,
      configuration => configuration.changed,
      service => () => void service.configured().catch(() => {}),
    ),
  ],
  services: [{ name: 'retention', run: (service, signal) => service.retain(signal) }],
  commands: [
    {
      path: 'audit verify',
      summary: 'Verify that no audit entry was altered or removed',
      options: [{ name: 'expect', type: 'text', summary: 'hash printed by an earlier run that must be in the chain' }],
      load: () => import('./commands.js'),
    },
  ],
  routes: [
    route({
      method: 'GET',
      path: '/api/audit',
      summary: 'List audited changes, newest first',
      query: AuditQuery,
      replies: { 200: AuditReply },
      before: (_, { actor }) => mayRead(actor),
      with: [
        cli('audit list', {
          view: show(
            AuditReply,
            'entries',
            [
              'seq',
              { of: 'at~ago', header: 'When' },
              'action',
              { of: 'subject', below: true },
              { of: 'actor.id', header: 'Actor' },
              'origin',
              { of: 'on_behalf_of', below: true },
            ],
            { empty: 'nothing was changed' },
          ),
        }),
        tool('observe_audit', ['operator_debug'], { visibility: 'operator' }),
      ],
      handle: (service, { query }) => ok(service.list(query)),
    }),
    route({
      method: 'GET',
      path: '/api/audit/verify',
      summary: 'Verify the audit chain and report the first altered entry',
      query: VerifyAuditQuery,
      replies: { 200: VerifyAuditReply },
      before: (_, { actor }) => mayRead(actor),
      handle: async (service, { query }) => ok(await service.verify(query.expect)),
    }),
    route({
      method: 'GET',
      path: '/api/audit/why',
      summary: 'Trace a run, session, event or record back to the request that caused it',
      query: WhyQuery,
      replies: { 200: WhyReply },
      before: (_, { actor }) => mayRead(actor),
      with: [
        cli('why', {
          args: [
            {
              name: 'id',
              in: 'query',
              summary: 'a session, run, job, trigger, task, event, request, or kind/id@version of a record',
            },
          ],
          view: withTable(
            show(WhyReply, '', [{ of: 'end', header: 'Cause' }]),
            'chain',
            columnsOf<WhyStep>()([
              { of: 'at~ago', header: 'When' },
              'what',
              'actor',
              'origin',
              { of: 'on_behalf_of', below: true },
              { of: 'subject', below: true },
              { of: 'id', below: true },
            ]),
          ),
        }),
        throws(AuditErrors.why_not_found),
        tool('observe_why', ['operator_debug'], { visibility: 'operator' }),
      ],
      handle: async (service, { query }) => ok(await service.why(query.id)),
    }),
  ],
})
