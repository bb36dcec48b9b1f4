import { cli, describe, throws, tool } from '../../../../kernel/kit/annotations/index.js'
import { collectionOf } from '../../../../kernel/kit/collection.js'
import { created, ok, type Route, routeOf } from '../../../../kernel/plugin.js'
import {
  CreateTriggerBody,
  EmitEventBody,
  EmitEventReply,
  ListJobRunsQuery,
  ListRunsReply,
  ListTriggersQuery,
  ListTriggersReply,
  PatchTriggerBody,
  TestTriggerBody,
  TestTriggerReply,
  TriggerReply,
} from '../../../../schemas/automation.js'
import { VaultErrors } from '../../../access/vault/api.js'
import { undo } from '../../../desk/changes/api.js'
import { WorkspaceErrors } from '../../../desk/workspaces/api.js'
import { AutomationErrors } from '../api.js'
import { runRows } from '../runs/routes.js'
import type { AutomationService } from '../service.js'

const about = describe('Automation')
const route = routeOf<AutomationService>(about)
const { trigger_not_found: missing, trigger_damaged, trigger_read_only } = AutomationErrors
/** Errors of a trigger that is refused. */
export const triggerRefusals = [
  AutomationErrors.trigger_invalid,
  AutomationErrors.trigger_name_taken,
  AutomationErrors.loop_invalid,
  AutomationErrors.lifecycle_command,
  AutomationErrors.webhook_id_taken,
]
/** Errors of storing the secret of a webhook. */
const unsealed = [
  AutomationErrors.webhook_vault_missing,
  VaultErrors.vault_value_short,
  VaultErrors.vault_value_invalid,
  VaultErrors.vault_full,
  VaultErrors.vault_secret_damaged,
  VaultErrors.vault_key_missing,
  VaultErrors.vault_key_readable,
  VaultErrors.vault_key_invalid,
  VaultErrors.vault_key_unreadable,
  VaultErrors.vault_key_wrong,
]
const argument = { summary: 'id or name of a trigger' }
const options = { agent_name: 'agent', webhook_allow_repeat: 'allow-repeat' }

const triggers = collectionOf<AutomationService>(about)({
  path: '/api/automation/triggers',
  key: 'id',
  noun: 'automation triggers',
  one: [TriggerReply, 'trigger'],
  many: [ListTriggersReply, 'triggers'],
  show: [
    'id',
    'name',
    'enabled',
    'event',
    { of: 'agent_name', header: 'Agent' },
    { of: 'webhook_endpoint', header: 'Endpoint', below: true },
  ],
  fields: [
    'id',
    'name',
    'enabled',
    'event',
    'filter',
    { of: 'agent_name', header: 'Agent' },
    'prompt',
    'scope',
    { of: 'workspace_id', header: 'Workspace' },
    'source',
    { of: 'webhook_endpoint', header: 'Endpoint' },
    { of: 'webhook_scheme', header: 'Signature scheme' },
    { of: 'webhook_allow_repeat', header: 'Allow repeat' },
    { of: 'webhook_secret_ref', header: 'Secret' },
    { of: 'fire_limit.max', header: 'Fire limit' },
    { of: 'fire_limit.window', header: 'Fire window' },
    { of: 'retry.strategy', header: 'Retry' },
    { of: 'retry.max_retries', header: 'Retries' },
    { of: 'retry.base_delay', header: 'Retry delay' },
  ],
  argument,
  missing,
})

export const triggerRoutes: readonly Route<AutomationService>[] = [
  triggers.list({
    summary: 'List triggers, newest first',
    query: ListTriggersQuery,
    with: [tool('automation_triggers_list', ['automation'])],
    empty: 'No triggers. Create one: svc automation triggers create --help',
    handle: (service, { actor, query }) => service.listTriggers(actor, query),
  }),
  triggers.create({
    summary: 'Create a trigger',
    body: CreateTriggerBody,
    with: [undo({ by: 'delete', of: 'trigger.id' }), tool('automation_triggers_create', ['automation'])],
    throws: [...triggerRefusals, ...unsealed],
    cli: {
      args: [{ name: 'name', option: true, summary: 'name of the trigger, unique in its scope' }],
      options: { ...options, workspace_id: 'workspace' },
      scoped: { scope: 'scope', workspace: 'workspace_id', opens: true },
    },
    handle: async (service, { actor, body }) => ({ trigger: await service.triggers.create(actor, body) }),
  }),
  triggers.get({
    summary: 'Show a trigger',
    command: 'automation triggers get',
    with: [tool('automation_triggers_info', ['automation'])],
    throws: [trigger_damaged],
    handle: async (service, { actor, params }) => {
      const record = service.triggers.find(params.id, actor)
      const hash = await service.webhooks.secretHash(record)
      return { trigger: { ...service.triggers.toWire(record), ...(hash && { webhook_secret_hash: hash }) } }
    },
  }),
  triggers.update({
    summary: 'Update a trigger; fields that are omitted or null keep their value',
    body: PatchTriggerBody,
    with: [undo({ by: 'patch', of: 'trigger' }), tool('automation_triggers_update', ['automation'])],
    throws: [...triggerRefusals, ...unsealed, trigger_damaged, trigger_read_only],
    cli: { options },
    handle: async (service, { actor, params, body }) => ({
      trigger: await service.triggers.patch(actor, params.id, body),
    }),
  }),
  triggers.delete({
    summary: 'Delete a trigger; its run history is kept',
    essential: true,
    with: [undo({ by: 'create', of: 'trigger' }), tool('automation_triggers_delete', ['automation'])],
    throws: [trigger_read_only],
    done: 'deleted trigger {id}',
    handle: (service, { actor, params }) => service.triggers.remove(actor, params.id),
  }),
  route({
    method: 'GET',
    path: '/api/automation/triggers/{id}/runs',
    summary: 'List the runs of a trigger, newest first',
    query: ListJobRunsQuery,
    replies: { 200: ListRunsReply },
    with: [
      cli('automation triggers history', {
        args: [{ name: 'id', ...argument }],
        view: { ...runRows, empty: 'No runs. This trigger has not fired yet.' },
      }),
      tool('automation_triggers_history', ['automation']),
      throws(missing),
    ],
    handle: async (service, { actor, params, query }) =>
      ok({ runs: await service.runs.ofTrigger(actor, params.id, query) }),
  }),
  triggers.action('test', {
    summary: 'Sign a delivery that a webhook trigger would accept; nothing is delivered',
    command: false,
    body: TestTriggerBody,
    bodyLimit: 256 * 1024,
    with: [undo({ by: 'never', why: 'a signature was made, and nothing was changed' })],
    throws: [
      trigger_damaged,
      AutomationErrors.trigger_not_webhook,
      AutomationErrors.webhook_secret_missing,
      AutomationErrors.webhook_headers_invalid,
    ],
    reply: TestTriggerReply,
    handle: async (service, { actor, params, body }) => {
      const trigger = service.triggers.find(params.id, actor)
      const { webhook_endpoint: path } = service.triggers.toWire(trigger)
      return { delivery: await service.webhooks.sample(trigger, path, body.body) }
    },
  }),
  route({
    method: 'POST',
    path: '/api/automation/events',
    audited: false,
    summary: 'Emit an event declared by the calling extension; only extensions may call this',
    body: EmitEventBody,
    bodyLimit: 80 * 1024,
    replies: { 201: EmitEventReply },
    with: [
      throws(
        AutomationErrors.event_foreign,
        AutomationErrors.event_undeclared,
        AutomationErrors.event_too_large,
        AutomationErrors.event_rate,
        WorkspaceErrors.workspace_not_found,
      ),
    ],
    handle: async (service, { actor, body }) => created({ event_id: (await service.emitted.request(actor, body)).id }),
  }),
]
