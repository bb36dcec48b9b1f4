import type { CliColumn } from '../../../../kernel/kit/annotations/index.js'
import { cli, describe, tool } from '../../../../kernel/kit/annotations/index.js'
import { created, noContent, ok, routeOf } from '../../../../kernel/plugin.js'
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
import { undo } from '../../../desk/changes/api.js'
import { runRows } from '../runs/routes.js'
import type { AutomationService } from '../service.js'

const route = routeOf<AutomationService>(describe('Automation'))

const triggerFields: readonly CliColumn[] = [
  { header: 'ID', path: 'id' },
  { header: 'Name', path: 'name' },
  { header: 'Enabled', path: 'enabled' },
  { header: 'Event', path: 'event' },
  { header: 'Filter', path: 'filter' },
  { header: 'Agent', path: 'agent_name' },
  { header: 'Prompt', path: 'prompt' },
  { header: 'Scope', path: 'scope' },
  { header: 'Workspace', path: 'workspace_id' },
  { header: 'Source', path: 'source' },
  { header: 'Endpoint', path: 'webhook_endpoint' },
  { header: 'Signature scheme', path: 'webhook_scheme' },
  { header: 'Allow repeat', path: 'webhook_allow_repeat' },
  { header: 'Secret', path: 'webhook_secret_ref' },
  { header: 'Fire limit', path: 'fire_limit' },
  { header: 'Retry', path: 'retry' },
]
const triggerItem = { item: 'trigger', fields: triggerFields } as const
const triggerId = { name: 'id', summary: 'id or name of a trigger' } as const

export const triggerRoutes = [
  route({
    method: 'GET',
    path: '/api/automation/triggers',
    summary: 'List triggers, newest first',
    query: ListTriggersQuery,
    replies: { 200: ListTriggersReply },
    with: [
      cli('automation triggers list', {
        view: {
          rows: 'triggers',
          columns: [
            { header: 'ID', path: 'id' },
            { header: 'NAME', path: 'name' },
            { header: 'ENABLED', path: 'enabled' },
            { header: 'EVENT', path: 'event' },
            { header: 'AGENT', path: 'agent_name' },
            { header: 'ENDPOINT', path: 'webhook_endpoint', below: true },
          ],
          empty: 'No triggers. Create one: svc automation triggers create --help',
        },
      }),
      tool('automation_triggers_list', ['automation']),
    ],
    handle: async (self, { actor, query }) => ok(await self.listTriggers(actor, query)),
  }),
  route({
    method: 'POST',
    path: '/api/automation/triggers',
    summary: 'Create a trigger',
    body: CreateTriggerBody,
    replies: { 201: TriggerReply },
    with: [
      undo({ by: 'delete', of: 'trigger.id' }),
      cli('automation triggers create', {
        args: [{ name: 'name', option: true, summary: 'name of the trigger, unique in its scope' }],
        options: { agent_name: 'agent', workspace_id: 'workspace', webhook_allow_repeat: 'allow-repeat' },
        scoped: { scope: 'scope', workspace: 'workspace_id', opens: true },
        view: triggerItem,
      }),
      tool('automation_triggers_create', ['automation']),
    ],
    handle: async (self, { actor, body }) => created({ trigger: await self.triggers.create(actor, body) }),
  }),
  route({
    method: 'GET',
    path: '/api/automation/triggers/{id}',
    summary: 'Show a trigger',
    replies: { 200: TriggerReply },
    with: [
      cli('automation triggers get', { args: [triggerId], view: triggerItem }),
      tool('automation_triggers_info', ['automation']),
    ],
    handle: (self, { actor, params }) => ok({ trigger: self.triggers.toWire(self.triggers.find(params.id, actor)) }),
  }),
  route({
    method: 'PATCH',
    path: '/api/automation/triggers/{id}',
    summary: 'Update a trigger; fields that are omitted or null keep their value',
    body: PatchTriggerBody,
    replies: { 200: TriggerReply },
    with: [
      undo({ by: 'patch', of: 'trigger' }),
      cli('automation triggers update', {
        args: [triggerId],
        options: { agent_name: 'agent', webhook_allow_repeat: 'allow-repeat' },
        view: triggerItem,
      }),
      tool('automation_triggers_update', ['automation']),
    ],
    handle: async (self, { actor, params, body }) => ok({ trigger: await self.triggers.patch(actor, params.id, body) }),
  }),
  route({
    method: 'DELETE',
    path: '/api/automation/triggers/{id}',
    summary: 'Delete a trigger; its run history is kept',
    essential: true,
    replies: { 204: null },
    with: [
      undo({ by: 'create', of: 'trigger' }),
      cli('automation triggers delete', { args: [triggerId], done: 'deleted trigger {id}' }),
      tool('automation_triggers_delete', ['automation']),
    ],
    handle: async (self, { actor, params }) => {
      await self.triggers.remove(actor, params.id)
      return noContent()
    },
  }),
  route({
    method: 'GET',
    path: '/api/automation/triggers/{id}/runs',
    summary: 'List the runs of a trigger, newest first',
    query: ListJobRunsQuery,
    replies: { 200: ListRunsReply },
    with: [
      cli('automation triggers history', {
        args: [triggerId],
        view: { ...runRows, empty: 'No runs. This trigger has not fired yet.' },
      }),
      tool('automation_triggers_history', ['automation']),
    ],
    handle: async (self, { actor, params, query }) => ok({ runs: await self.runs.ofTrigger(actor, params.id, query) }),
  }),
  route({
    method: 'POST',
    path: '/api/automation/triggers/{id}/test',
    summary: 'Sign a delivery that a webhook trigger would accept; nothing is delivered',
    body: TestTriggerBody,
    bodyLimit: 256 * 1024,
    replies: { 200: TestTriggerReply },
    with: [undo({ by: 'never', why: 'a signature was made, and nothing was changed' })],
    handle: async (self, { actor, params, body }) => {
      const trigger = self.triggers.find(params.id, actor)
      const { webhook_endpoint: path } = self.triggers.toWire(trigger)
      return ok({ delivery: await self.webhooks.sample(trigger, path, body.body) })
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
    handle: async (self, { actor, body }) => created({ event_id: (await self.emitted.request(actor, body)).id }),
  }),
]
