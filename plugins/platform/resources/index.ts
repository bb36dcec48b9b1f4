import { cli, describe, show, throws, tool } from '../../../kernel/kit/annotations/index.js'
import { command } from '../../../kernel/kit/commands/command-line.js'
import { created, definePlugin, noContent, ok, RecordErrors, recordToWire, routeOf } from '../../../kernel/plugin.js'
import {
  DeleteRecordBody,
  ListRecordsQuery,
  ListRecordsReply,
  PutRecordBody,
  RecordReply,
} from '../../../schemas/resources.js'
import { undo } from '../../desk/changes/api.js'
import { RECORD_DELETE_ERRORS, RECORD_PUT_ERRORS, ResourceErrors } from './api.js'
import { needs } from './needs.js'
import { OperatorWriteLimit } from './rate-limit.js'
import type { ResourcesService } from './service.js'

const route = routeOf<ResourcesService>(describe('Desired-state resources'))
/** Bytes: above the largest spec of any kind (4 MiB), so that the codec reports specs that are too large. */
const PUT_LIMIT = 5 * 1024 * 1024

export default definePlugin({
  name: 'resources',
  version: '0.1.0',
  requires: needs,
  service: () => import('./service.js').then(module => module.ResourcesService),
}).surface({
  hooks: { written: (service, _, { change }) => service.texts.touch(change) },
  errors: [ResourceErrors],
  settings: [OperatorWriteLimit],
  commands: [
    {
      path: 'resource put',
      summary: 'Create or change a record',
      args: [
        { name: 'kind', summary: 'kind of the record, such as automation.job' },
        { name: 'id', summary: 'id of the record, unique within its kind' },
      ],
      options: [
        { name: 'file', type: 'text', summary: 'JSON file with the spec; - reads standard input' },
        { name: 'spec', type: 'text', summary: 'spec as JSON' },
        { name: 'scope-kind', type: 'text', summary: 'user, global (default) or workspace' },
        { name: 'scope-id', type: 'text', summary: 'workspace id; implies --scope-kind workspace' },
        {
          name: 'expected-version',
          type: 'integer',
          summary: 'current version of the record; omit it to create a record',
        },
        { name: 'force', type: 'boolean', summary: 'store the record even if no plugin has that kind' },
      ],
      load: () => import('./commands.js'),
    },
  ],
  routes: [
    route({
      method: 'GET',
      path: '/api/resources',
      summary: 'List records, by kind and id',
      query: ListRecordsQuery,
      invalid: 422,
      replies: { 200: ListRecordsReply },
      with: [
        cli('resource list', {
          args: [{ name: 'kind', in: 'query', optional: true, summary: 'kind of the records; default: all kinds' }],
          view: show(
            ListRecordsReply,
            'records',
            [
              'kind',
              'id',
              { of: 'scope.kind', header: 'Scope' },
              { of: 'scope.id', header: 'Workspace' },
              { of: 'source.id', header: 'Source' },
              'version',
              'updated_at~ago',
            ],
            { empty: `no records; write one: ${command('resource put', '--help')}` },
          ),
        }),
        tool('resources_list', ['resources']),
      ],
      handle: async (service, { query, actor }) => ok(await service.list(actor, query)),
    }),
    route({
      method: 'GET',
      path: '/api/resources/{kind}',
      with: [tool('resources_snapshot', ['resources'])],
      summary: 'List records of one kind',
      query: ListRecordsQuery,
      invalid: 422,
      replies: { 200: ListRecordsReply },
      before: (service, { params }) => service.checkKind(params.kind),
      handle: async (service, { params, query, actor }) => ok(await service.list(actor, query, params.kind)),
    }),
    route({
      method: 'GET',
      path: '/api/resources/{kind}/{id}',
      summary: 'Show a record',
      invalid: 422,
      replies: { 200: RecordReply },
      with: [
        cli('resource get', {
          view: show(RecordReply, 'record', [
            'kind',
            'id',
            { of: 'scope.kind', header: 'Scope' },
            { of: 'scope.id', header: 'Workspace' },
            { of: 'owner.kind', header: 'Owner kind' },
            { of: 'owner.id', header: 'Owner' },
            { of: 'source.kind', header: 'Source kind' },
            { of: 'source.id', header: 'Source' },
            'version',
            'created_at~time',
            'updated_at~time',
            'spec',
          ]),
        }),
        tool('resources_info', ['resources']),
      ],
      before: (service, { params }) => service.checkKind(params.kind),
      handle: (service, { params, actor }) => ok(service.get(actor, params.kind, params.id)),
    }),
    route({
      method: 'PUT',
      path: '/api/resources/{kind}/{id}',
      with: [
        undo({ by: 'record' }),
        tool('resources_put', ['resources']),
        throws(ResourceErrors.write_rate_limited, ...RECORD_PUT_ERRORS),
      ],
      summary: 'Create or change a record',
      body: PutRecordBody,
      invalid: 422,
      bodyLimit: PUT_LIMIT,
      replies: { 200: RecordReply, 201: RecordReply },
      before: (service, { params, actor }) => service.checkWriter(actor, params.kind, params.id),
      handle: async (service, request) => {
        const stored = await service.put(request.params, request.body, request.actor, request)
        const reply = { record: recordToWire(stored.record) }
        return stored.created ? created(reply) : ok(reply)
      },
    }),
    route({
      method: 'DELETE',
      path: '/api/resources/{kind}/{id}',
      summary: 'Delete a record at its current version',
      essential: true,
      body: DeleteRecordBody,
      bodyOptional: true,
      invalid: 422,
      replies: { 204: null },
      with: [
        undo({ by: 'record' }),
        cli('resource delete', { done: 'deleted {kind} {id}' }),
        tool('resources_delete', ['resources']),
        throws(ResourceErrors.write_rate_limited, RecordErrors.invalid_id, ...RECORD_DELETE_ERRORS),
      ],
      before: (service, { params, actor }) => service.checkWriter(actor, params.kind, params.id),
      handle: async (service, request) => {
        await service.delete(request.params, request.body, request.actor, request)
        return noContent()
      },
    }),
  ],
})
