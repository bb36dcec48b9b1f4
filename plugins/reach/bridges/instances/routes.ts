import { cli, describe, runsCode, show, throws, tool } from '../../../../kernel/kit/annotations/index.js'
import { collectionOf } from '../../../../kernel/kit/collection.js'
import { errorBody } from '../../../../kernel/platform.js'
import { noContent, ok, type Route, routeOf, streamed } from '../../../../kernel/plugin.js'
import {
  AppManifestReply,
  BridgeHealthChange,
  BridgeHealthFrame,
  BridgeHealthQuery,
  BridgeProvidersReply,
  BridgeReply,
  BridgeSecretBindingReply,
  BridgeSecretBindingsReply,
  CreateBridgeBody,
  ListBridgesQuery,
  ListBridgesReply,
  ListBridgeTargetsQuery,
  ListBridgeTargetsReply,
  PatchBridgeBody,
  PlatformManifestQuery,
  PlatformManifestReply,
  PutBridgeSecretBody,
  RegisterWebhookReply,
  ResolveBridgeTargetBody,
  ResolveBridgeTargetFailure,
  ResolveBridgeTargetReply,
  SendTestBody,
  SendTestReply,
  TestDeliveryBody,
  TestDeliveryReply,
  VerifyBridgeReply,
} from '../../../../schemas/bridges.js'
import { VaultErrors } from '../../../access/vault/api.js'
import { undo } from '../../../desk/changes/api.js'
import { REFERENCE_ERRORS } from '../../../desk/workspaces/api.js'
import { BridgeErrors } from '../api.js'
import type { BridgesService } from '../service.js'

const about = describe('Bridges')
const route = routeOf<BridgesService>(about)
const id = { name: 'id', summary: 'id of a bridge' } as const
const ONE = '/api/bridges/{id}'
const notFound = BridgeErrors.bridge_not_found

/** `--group '#ops'` for a target. */
const targetOptions = (['peer', 'group'] as const).map(option => ({
  option,
  member: 'target',
  value: { [`${option}_id`]: '$' },
  type: 'text' as const,
  summary: `id of the ${option} to send to; default: the delivery defaults of the bridge`,
}))
const targetFields = [
  { of: 'delivery_target.group_id', header: 'Group' },
  { of: 'delivery_target.peer_id', header: 'Peer' },
  { of: 'delivery_target.thread_id', header: 'Thread' },
  { of: 'delivery_target.mode', header: 'Mode' },
] as const

const bridge = collectionOf<BridgesService>(about)({
  path: '/api/bridges',
  key: 'id',
  noun: 'bridge',
  one: [BridgeReply, 'bridge'],
  many: [ListBridgesReply, 'bridges'],
  show: [
    'id',
    { of: 'display_name', header: 'Name' },
    'platform',
    'status',
    'scope',
    { of: 'degradation.message', header: 'Why', below: true },
  ],
  fields: [
    'id',
    { of: 'display_name', header: 'Name' },
    'platform',
    { of: 'extension_name', header: 'Extension' },
    'status',
    { of: 'degradation.reason', header: 'Reason' },
    { of: 'degradation.message', header: 'Why' },
    'enabled',
    'scope',
    { of: 'workspace_id', header: 'Workspace' },
    'source',
    { of: 'dm_policy', header: 'Direct messages' },
    { of: 'notification_suppress', header: 'No notifications' },
    { of: 'webhook_public_url', header: 'Webhook' },
    'created_at~time',
    'updated_at~ago',
  ],
  argument: id,
  missing: notFound,
})

/** Routes of instances. */
export const instanceRoutes: readonly Route<BridgesService>[] = [
  bridge.list({
    summary: 'List bridges, global ones first, then by name',
    query: ListBridgesQuery,
    with: [tool('bridges_list', ['bridges'])],
    throws: REFERENCE_ERRORS,
    empty: 'no bridges; set one up: svc bridge setup <platform>',
    handle: async (service, { query, actor }) => (await import('./listing.js')).listBridges(service, query, actor),
  }),
  bridge.create({
    with: [
      undo({
        by: 'never',
        why: 'a bridge cannot be deleted, because its messages refer to it; disable it: svc bridge disable',
      }),
    ],
    cli: {
      options: { extension_name: 'extension', workspace_id: 'workspace' },
      scoped: { scope: 'scope', workspace: 'workspace_id' },
    },
    body: CreateBridgeBody,
    throws: [
      BridgeErrors.bridge_invalid,
      BridgeErrors.bridge_provider_not_found,
      BridgeErrors.bridge_config_invalid,
      BridgeErrors.bridge_schema_unusable,
      ...REFERENCE_ERRORS,
    ],
    handle: async (service, { body, actor }) => service.health.reply(await service.edits.create(body, actor)),
  }),
  route({
    method: 'GET',
    path: '/api/bridges/health/stream',
    summary: 'Stream the health of bridges: first of all given bridges, then changes (server-sent events)',
    query: BridgeHealthQuery,
    headers: { 'Last-Event-ID': { required: false } },
    replies: { 200: BridgeHealthChange },
    contentType: 'text/event-stream',
    frames: BridgeHealthFrame,
    with: [
      cli('bridge watch', {
        args: [{ name: 'bridge_ids', in: 'query', summary: 'ids of bridges, separated by commas' }],
      }),
      throws(notFound, BridgeErrors.bridge_invalid, ...REFERENCE_ERRORS),
    ],
    handle: async (service, { query, actor, headers, signal }) =>
      streamed(await service.health.stream(query, actor, headers['last-event-id'], signal)),
  }),
  bridge.get({
    command: 'bridge get',
    with: [tool('bridges_status', ['bridges'])],
    handle: (service, { params, actor }) => service.health.reply(params.id, actor),
  }),
  bridge.update({
    summary: 'Change a bridge; members that are omitted keep their value',
    with: [undo({ by: 'patch', of: 'bridge' }), tool('bridges_update', ['bridges'])],
    throws: [
      BridgeErrors.bridge_invalid,
      BridgeErrors.bridge_config_invalid,
      BridgeErrors.bridge_schema_unusable,
      BridgeErrors.bridge_read_only,
      BridgeErrors.bridge_transition,
    ],
    body: PatchBridgeBody,
    handle: async (service, { params, body, actor }) => {
      await service.edits.patch(params.id, body, actor)
      return service.health.reply(params.id)
    },
  }),
  bridge.action('enable', {
    summary: 'Enable a bridge: it starts',
    with: [undo({ by: 'action', verb: 'disable' })],
    throws: [BridgeErrors.bridge_transition],
    handle: async (service, { params, actor }) => {
      await service.edits.enable(params.id, true, actor)
      return service.health.reply(params.id)
    },
  }),
  bridge.action('disable', {
    summary: 'Disable a bridge: it stops',
    with: [undo({ by: 'action', verb: 'enable' })],
    throws: [BridgeErrors.bridge_transition],
    essential: true,
    handle: async (service, { params, actor }) => {
      await service.edits.enable(params.id, false, actor)
      return service.health.reply(params.id)
    },
  }),
  bridge.action('restart', {
    summary: 'Restart the adapter of a bridge',
    with: [undo({ by: 'never', why: 'it changes no setting' })],
    throws: [BridgeErrors.bridge_transition],
    handle: async (service, { params, actor }) => {
      service.instances.found(params.id, actor)
      await service.adapters.restart(params.id)
      return service.health.reply(params.id)
    },
  }),
  route({
    method: 'GET',
    path: '/api/bridges/providers',
    summary: 'List the platforms that extensions provide',
    replies: { 200: BridgeProvidersReply },
    with: [
      cli('bridge providers', {
        view: show(
          BridgeProvidersReply,
          'providers',
          [
            'platform',
            { of: 'display_name', header: 'Name' },
            { of: 'extension_name', header: 'Extension' },
            'state',
            'health',
            { of: 'health_message', below: true },
          ],
          { empty: 'no platforms; install an extension that provides one: svc marketplace search bridge' },
        ),
      }),
    ],
    handle: async service => ok({ providers: await service.health.providers() }),
  }),
  route({
    method: 'GET',
    path: `${ONE}/secret-bindings`,
    summary: 'List the secret slots of a bridge that have a value',
    replies: { 200: BridgeSecretBindingsReply },
    with: [
      cli('bridge secret-bindings list', {
        args: [id],
        view: show(BridgeSecretBindingsReply, 'bindings', ['binding_name', 'kind', 'secret_ref', 'updated_at~ago'], {
          empty: 'no slot has a value',
        }),
      }),
      throws(notFound),
    ],
    handle: (service, { params, actor }) => ok({ bindings: service.secrets.list(params.id, actor) }),
  }),
  route({
    method: 'PUT',
    path: `${ONE}/secret-bindings/{binding_name}`,
    summary: 'Bind a secret slot of a bridge; the value is never returned',
    body: PutBridgeSecretBody,
    // A value that is too long is refused with a message naming the limit. JSON may double the size of a value of up to
    // 4 MiB.
    bodyLimit: 9 * 1024 * 1024,
    replies: { 200: BridgeSecretBindingReply },
    with: [
      undo({
        by: 'never',
        why: 'the former value of a secret is not kept; bind it again: svc bridge secret-bindings put',
      }),
      throws(
        notFound,
        BridgeErrors.bridge_binding_invalid,
        BridgeErrors.bridge_slot_unknown,
        VaultErrors.vault_value_short,
        VaultErrors.vault_value_invalid,
        VaultErrors.vault_full,
      ),
    ],
    handle: async (service, { params, body, actor }) => {
      const binding = await service.secrets.put(params.id, params.binding_name, body, actor)
      service.adapters.markAll()
      return ok({ binding })
    },
  }),
  route({
    method: 'DELETE',
    path: `${ONE}/secret-bindings/{binding_name}`,
    summary: 'Unbind a secret slot of a bridge and delete its value',
    replies: { 204: null },
    with: [
      undo({
        by: 'never',
        why: 'the value of a deleted secret is not kept; bind it again: svc bridge secret-bindings put',
      }),
      cli('bridge secret-bindings delete', {
        args: [id, { name: 'binding_name', summary: 'name of the slot' }],
        done: 'unbound {binding_name}',
      }),
      throws(notFound, BridgeErrors.bridge_binding_not_found, BridgeErrors.bridge_slot_unknown),
    ],
    handle: async (service, { params, actor }) => {
      await service.secrets.delete(params.id, params.binding_name, actor)
      service.adapters.markAll()
      return noContent()
    },
  }),
  route({
    method: 'GET',
    path: '/api/bridges/providers/{platform}/manifest',
    summary: 'Show the manifest of the app of a platform for a bridge',
    query: PlatformManifestQuery,
    replies: { 200: AppManifestReply },
    with: [throws(notFound, BridgeErrors.bridge_manifest_not_found, BridgeErrors.bridge_invalid)],
    handle: async (service, { params, query, actor }) => {
      const { appManifestOf } = await import('./manifest.js')
      return ok({ manifest: appManifestOf(service.instances, params.platform, query.instance, actor) })
    },
  }),
  route({
    method: 'GET',
    path: '/api/bridges/providers/chatprovider/manifest',
    summary: 'Show the manifest of the Slack app for a bridge',
    query: PlatformManifestQuery,
    replies: { 200: PlatformManifestReply },
    with: [throws(notFound, BridgeErrors.bridge_manifest_not_found, BridgeErrors.bridge_invalid)],
    handle: async (service, { query, actor }) => {
      const { manifestOf } = await import('./manifest.js')
      return ok({ manifest: manifestOf(service.instances, 'chatprovider', query.instance, actor) })
    },
  }),
  route({
    method: 'GET',
    path: `${ONE}/targets`,
    summary: 'List the known rooms and persons of the platform',
    query: ListBridgeTargetsQuery,
    replies: { 200: ListBridgeTargetsReply },
    with: [
      cli('bridge targets', {
        args: [id, { name: 'q', in: 'query', optional: true, summary: 'search in names and routes' }],
        view: show(
          ListBridgeTargetsReply,
          'targets',
          [{ of: 'canonical_route', header: 'Route' }, 'display_name', 'target_type', 'qualifier', 'last_seen_at~ago'],
          { empty: 'no targets; the platform lists them once the bridge is ready' },
        ),
      }),
      throws(notFound),
    ],
    handle: (service, { params, query, actor }) => ok(service.directory.list(params.id, query, actor)),
  }),
  route({
    method: 'POST',
    path: `${ONE}/resolve`,
    summary: 'Find a target by its route, id or name; nothing is sent',
    body: ResolveBridgeTargetBody,
    audited: false,
    replies: { 200: ResolveBridgeTargetReply, 404: ResolveBridgeTargetFailure, 422: ResolveBridgeTargetFailure },
    // The body of a refusal has the result next to the error, even if the bridge does not exist.
    faults: {
      reply: ResolveBridgeTargetFailure,
      body: fault => ({ ...errorBody(fault), result: { ambiguous: false, step: 0 } }),
    },
    with: [
      cli('bridge resolve', {
        args: [id, { name: 'name', in: 'body', summary: 'a route, an id or a name' }],
        view: show(ResolveBridgeTargetReply, 'result', [
          { of: 'match.canonical_route', header: 'Route' },
          { of: 'match.display_name', header: 'Name' },
          { of: 'match.target_type', header: 'Type' },
        ]),
      }),
      throws(notFound, BridgeErrors.bridge_target_unknown, BridgeErrors.bridge_target_ambiguous),
      runsCode(false),
    ],
    handle: (service, { params, body, actor }) => {
      service.instances.found(params.id, actor)
      const { result, diagnostic } = service.directory.resolve(params.id, body.name.trim())
      if (!diagnostic) return ok({ result })
      const failure = { result, diagnostic, error: diagnostic.message, code: diagnostic.code }
      return { status: result.ambiguous ? (422 as const) : (404 as const), body: failure }
    },
  }),
  route({
    method: 'POST',
    path: `${ONE}/test-delivery`,
    summary: 'Show where a message would go; nothing is sent',
    body: TestDeliveryBody,
    audited: false,
    replies: { 200: TestDeliveryReply },
    with: [
      cli('bridge test-delivery', {
        args: [id],
        shorthands: targetOptions,
        view: show(TestDeliveryReply, '', ['status', ...targetFields]),
      }),
      throws(notFound, BridgeErrors.bridge_target_invalid, BridgeErrors.bridge_not_ready),
      runsCode(false),
    ],
    handle: (service, { params, body, actor }) => ok(service.trials.testDelivery(params.id, body, actor)),
  }),
  route({
    method: 'POST',
    path: `${ONE}/send-test`,
    summary: 'Send a test message and wait for the result',
    body: SendTestBody,
    replies: { 200: SendTestReply },
    with: [
      undo({ by: 'never', why: 'a sent message cannot be withdrawn' }),
      cli('bridge send-test', {
        args: [id],
        shorthands: targetOptions,
        view: show(SendTestReply, '', [
          'status',
          'delivery_id',
          'remote_message_id',
          { of: 'error.message', header: 'Why' },
          ...targetFields,
        ]),
      }),
      throws(
        notFound,
        BridgeErrors.bridge_target_invalid,
        BridgeErrors.bridge_not_ready,
        BridgeErrors.bridge_send_failed,
      ),
    ],
    handle: async (service, { params, body, actor }) => ok(await service.trials.sendTest(params.id, body, actor)),
  }),
  route({
    method: 'POST',
    path: `${ONE}/verify`,
    summary: 'Verify a bridge: configuration, process, transport, inbound, outbound',
    replies: { 200: VerifyBridgeReply },
    with: [
      undo({ by: 'never', why: 'it changes no setting' }),
      cli('bridge verify', {
        args: [id],
        view: show(VerifyBridgeReply, 'checks', [
          'check',
          'status',
          { of: 'remediation', header: 'Detail', below: true },
        ]),
      }),
      throws(notFound),
    ],
    handle: async (service, { params, actor, signal }) => ok(await service.trials.verify(params.id, actor, signal)),
  }),
  route({
    method: 'POST',
    path: `${ONE}/webhook/register`,
    summary: 'Register the webhook of a bridge at its platform',
    replies: { 200: RegisterWebhookReply },
    with: [
      undo({ by: 'never', why: 'the platform keeps the newest address; register it again after a change' }),
      cli('bridge webhook register', {
        args: [id],
        view: show(RegisterWebhookReply, '', ['status', { of: 'remediation', header: 'Detail' }]),
      }),
      throws(notFound, BridgeErrors.bridge_not_ready),
    ],
    handle: async (service, { params, actor, signal }) =>
      ok(await service.trials.registerWebhook(params.id, actor, signal)),
  }),
]
