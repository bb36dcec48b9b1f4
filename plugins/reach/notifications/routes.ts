import {
  cli,
  columnsOf,
  describe,
  runsCode,
  show,
  throws,
  tool,
  withTable,
} from '../../../kernel/kit/annotations/index.js'
import { collectionOf } from '../../../kernel/kit/collection.js'
import { created, noContent, ok, type Route, routeOf } from '../../../kernel/plugin.js'
import type { PresetTargetState } from '../../../schemas/notifications.js'
import * as schemas from '../../../schemas/notifications.js'
import { AGENT_SESSION } from '../../access/identity/api.js'
import { undo } from '../../desk/changes/api.js'
import { REFERENCE_ERRORS } from '../../desk/workspaces/api.js'
import { TaskErrors } from '../../work/tasks/api.js'
import { BridgeErrors } from '../bridges/api.js'
import { NotificationErrors } from './api.js'
import type { NotificationsService } from './service.js'

const about = describe('Notifications')
const route = routeOf<NotificationsService>(about)
const invalid = [
  NotificationErrors.preset_events_invalid,
  NotificationErrors.preset_filter_invalid,
  NotificationErrors.preset_rules_invalid,
  NotificationErrors.preset_target_ambiguous,
  NotificationErrors.preset_target_invalid,
]

const preset = collectionOf<NotificationsService>(
  about,
  runsCode(false),
)({
  path: '/api/notifications/presets',
  key: 'name',
  noun: 'notifications preset',
  one: [schemas.PresetReply, 'preset'],
  many: [schemas.ListPresetsReply, 'presets'],
  show: [
    'name',
    'enabled',
    { of: 'target_names', header: 'Targets' },
    { of: 'events', below: true },
    { of: 'filter', below: true },
  ],
  fields: [
    'name',
    'enabled',
    'built_in',
    'events~list',
    'filter',
    { of: 'user_modified', header: 'Changed by a person' },
    { of: 'default_update_available', header: 'Newer default' },
    'created_at~time',
    'updated_at~ago',
  ],
  missing: NotificationErrors.preset_not_found,
})

/** Targets of a preset, with the state of their messages. */
const targetColumns = columnsOf<PresetTargetState>()([
  { of: 'bridge_name', header: 'Sends to' },
  { of: 'canonical_route', header: 'Route' },
  { of: 'last_queued_at~ago', header: 'Last message' },
  { of: 'retry_at~ago', header: 'Next try' },
  { of: 'last_error', header: 'Error', below: true },
])

/** The routes of presets. */
const presetRoutes: readonly Route<NotificationsService>[] = [
  preset.list({
    summary: 'List notification presets',
    command: 'notifications presets list',
    query: schemas.ListPresetsQuery,
    empty: 'no presets',
    handle: (service, { query }) => service.presets.list(query),
  }),
  preset.create({
    summary: 'Create a notification preset',
    command: false,
    with: [undo({ by: 'delete', of: 'preset.name' })],
    query: schemas.ProfileQuery,
    body: schemas.CreatePresetBody,
    throws: [...invalid, NotificationErrors.preset_duplicate_name, NotificationErrors.preset_limit],
    handle: async (service, { query, body }) => ({ preset: await service.presets.create(body, query.profile) }),
  }),
  preset.get({
    summary: 'Show a notification preset and the delivery status of its messages',
    query: schemas.ProfileQuery,
    cli: { view: withTable(preset.view, 'target_states', targetColumns) },
    handle: (service, { params, query }) => ({ preset: service.presets.show(params.name, query.profile) }),
  }),
  preset.update({
    method: 'PUT',
    summary: 'Change a notification preset; omitted members keep their values',
    command: false,
    with: [undo({ by: 'put', of: 'preset', absent: { filter: '', rules: {} } })],
    query: schemas.ProfileQuery,
    body: schemas.UpdatePresetBody,
    throws: [...invalid, NotificationErrors.preset_limit],
    handle: async (service, { params, query, body }) => ({
      preset: await service.presets.update(params.name, body, query.profile),
    }),
  }),
  preset.delete({
    summary: 'Delete a notification preset',
    with: [undo({ by: 'create', of: 'preset' })],
    throws: [NotificationErrors.preset_builtin_protected],
    handle: (service, { params }) => service.presets.delete(params.name),
  }),
  route({
    method: 'PUT',
    path: '/api/notifications/presets/{name}/enablement',
    summary: 'Enable or disable a notification preset in a profile',
    body: schemas.EnablementBody,
    replies: { 200: schemas.PresetEnablement },
    with: [
      undo({ by: 'never', why: 'set it again: svc notifications' }),
      runsCode(false),
      throws(NotificationErrors.preset_not_found, NotificationErrors.preset_limit),
    ],
    handle: async (service, { params, body }) =>
      ok(await service.presets.setEnabled(params.name, body.enabled, body.profile)),
  }),
]

const attentionRoutes: readonly Route<NotificationsService>[] = [
  route({
    method: 'GET',
    path: '/api/notifications/attention',
    summary: 'List items that need your attention, and unseen finished work',
    query: schemas.AttentionQuery,
    replies: { 200: schemas.Attention },
    with: [
      cli('attention', {
        view: show(
          schemas.Attention,
          'items',
          [
            'kind',
            'title',
            'occurred_at~ago',
            { of: 'workspace_label', header: 'Workspace' },
            { of: 'id', header: 'Id', below: true },
            { of: 'detail', below: true },
            { of: 'command', below: true },
          ],
          { empty: 'nothing needs your attention', problems: 'notes' },
        ),
      }),
      throws(NotificationErrors.attention_query_invalid, ...REFERENCE_ERRORS),
    ],
    handle: async (service, { query }) => ok(await service.attention.list(query)),
  }),
  route({
    method: 'POST',
    path: '/api/notifications/attention/acknowledge',
    audited: false,
    summary: 'Acknowledge the listed items, or one of them',
    query: schemas.AttentionQuery,
    body: schemas.AcknowledgeBody,
    replies: { 204: null },
    with: [
      runsCode(false),
      throws(
        NotificationErrors.attention_changed,
        NotificationErrors.attention_item_unknown,
        NotificationErrors.attention_query_invalid,
        ...REFERENCE_ERRORS,
      ),
    ],
    handle: async (service, { query, body }) => {
      await service.attention.acknowledge(query, body)
      return noContent()
    },
  }),
]

const subscription = [schemas.SubscriptionReply, 'subscription'] as const
const shownSubscription = [
  'subscription_id',
  { of: 'bridge_instance_id', header: 'Bridge' },
  'group_id',
  'peer_id',
  { of: 'cursor.last_delivered_at~ago', header: 'Delivered' },
  { of: 'cursor.last_error', header: 'Error', below: true },
] as const
const ONE = '/api/tasks/{id}/notifications/bridges/{subscription_id}'
const ofTask = [TaskErrors.task_not_found, NotificationErrors.subscription_not_found]

/** The routes for announcements of a task's end. */
const subscriptionRoutes: readonly Route<NotificationsService>[] = [
  route({
    method: 'GET',
    path: '/api/tasks/{id}/notifications/bridges',
    summary: 'List the rooms notified when a task ends',
    query: schemas.ListSubscriptionsQuery,
    replies: { 200: schemas.ListSubscriptionsReply },
    with: [
      cli('task notification list', {
        view: show(schemas.ListSubscriptionsReply, 'subscriptions', shownSubscription, {
          empty: 'no room is notified',
        }),
      }),
      throws(TaskErrors.task_not_found),
    ],
    handle: (service, { params, query }) => ok({ subscriptions: service.subscriptions.list(params.id, query) }),
  }),
  route({
    method: 'POST',
    path: '/api/tasks/{id}/notifications/bridges',
    summary: 'Notify a room when a task ends',
    body: schemas.SubscribeBody,
    replies: { 201: schemas.SubscriptionReply },
    with: [
      undo({ by: 'never', why: 'stop notifying it: svc task notification remove' }),
      cli('task notification add', {
        args: [{ name: 'id' }, { name: 'bridge_instance_id', in: 'body', summary: 'id of a bridge' }],
        view: show(...subscription, shownSubscription),
      }),
      runsCode(false),
      throws(
        TaskErrors.task_not_found,
        BridgeErrors.bridge_not_found,
        NotificationErrors.subscription_invalid,
        NotificationErrors.subscription_exists,
        ...REFERENCE_ERRORS,
      ),
    ],
    handle: async (service, { params, body, actor }) =>
      created({ subscription: await service.subscriptions.add(params.id, body, actor) }),
  }),
  route({
    method: 'GET',
    path: ONE,
    summary: 'Show a room notified when a task ends',
    replies: { 200: schemas.SubscriptionReply },
    with: [cli('task notification show', { view: show(...subscription, shownSubscription) }), throws(...ofTask)],
    handle: (service, { params }) =>
      ok({ subscription: service.subscriptions.show(params.id, params.subscription_id) }),
  }),
  route({
    method: 'DELETE',
    path: ONE,
    summary: 'Stop notifying a room when a task ends',
    replies: { 204: null },
    with: [
      undo({ by: 'never', why: 'notify it again: svc task notification add' }),
      cli('task notification remove', { done: 'removed {subscription_id}' }),
      runsCode(false),
      throws(...ofTask),
    ],
    handle: async (service, { params }) => {
      await service.subscriptions.remove(params.id, params.subscription_id)
      return noContent()
    },
  }),
]

const notify = route({
  method: 'POST',
  path: '/api/agent/notify',
  audited: false,
  summary: 'Send a notification to people, as the agent of a session',
  headers: { 'X-Service-Session-ID': { required: false }, 'X-Service-Agent': { required: false } },
  origins: [AGENT_SESSION],
  invalid: 422,
  body: schemas.NotifyBody,
  replies: { 200: schemas.NotifyReply },
  with: [
    describe('Agent self-service (caller headers)'),
    cli('me notify', {
      args: [{ name: 'title', in: 'body' }],
      view: show(schemas.NotifyReply, '', ['outcome', 'retry_after_ms~duration']),
    }),
    tool('notify', ['bootstrap', 'coordination']),
    runsCode(false),
    throws(NotificationErrors.notice_invalid),
  ],
  handle: async (service, { actor, headers, body }) => ok(await service.notify(actor, headers, body)),
})

export const routes: readonly Route<NotificationsService>[] = [
  ...presetRoutes,
  ...attentionRoutes,
  ...subscriptionRoutes,
  notify,
]
