import { type CliColumn, created, noContent, ok, routeOf } from '../../../kernel/plugin.js'
import {
  CreateTriggerBody,
  EmitEventBody,
  EmitEventReply,
  ListJobRunsQuery,
  ListRunsReply,
  ListTriggersQuery,
  ListTriggersReply,
  PatchTriggerBody,
  TriggerReply,
} from '../../../schemas/automation.js'
import { runRows } from '../runs/routes.js'
import type { AutomationService } from '../service.js'

const route = routeOf<AutomationService>()
const area = 'Automation'

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
    area,
    summary: 'List triggers, newest first',
    query: ListTriggersQuery,
    replies: { 200: ListTriggersReply },
    cli: {
      path: 'automation triggers list',
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
    },
    handle: async (self, { actor, query }) => ok(await self.listTriggers(actor, query)),
  }),
  route({
    method: 'POST',
    path: '/api/automation/triggers',
    area,
    summary: 'Create a trigger',
    body: CreateTriggerBody,
    replies: { 201: TriggerReply },
    cli: {
      path: 'automation triggers create',
      args: [{ name: 'name', option: true, summary: 'name of the trigger, unique in its scope' }],
      options: { agent_name: 'agent', workspace_id: 'workspace' },
      scoped: { scope: 'scope', workspace: 'workspace_id', opens: true },
      view: triggerItem,
    },
    handle: async (self, { actor, body }) => created({ trigger: await self.triggers.create(actor, body) }),
  }),
  route({
    method: 'GET',
    path: '/api/automation/triggers/{id}',
    area,
    summary: 'Show a trigger',
    replies: { 200: TriggerReply },
    cli: { path: 'automation triggers get', args: [triggerId], view: triggerItem },
    handle: (self, { actor, params }) => ok({ trigger: self.triggers.toWire(self.triggers.find(params.id, actor)) }),
  }),
  route({
    method: 'PATCH',
    path: '/api/automation/triggers/{id}',
    area,
    summary: 'Update a trigger; fields that are omitted or null keep their value',
    body: PatchTriggerBody,
    replies: { 200: TriggerReply },
    cli: {
      path: 'automation triggers update',
      args: [triggerId],
      options: { agent_name: 'agent' },
      view: triggerItem,
    },
    handle: async (self, { actor, params, body }) => ok({ trigger: await self.triggers.patch(actor, params.id, body) }),
  }),
  route({
    method: 'DELETE',
    path: '/api/automation/triggers/{id}',
    area,
    summary: 'Delete a trigger; its run history is kept',
    essential: true,
    replies: { 204: null },
    cli: { path: 'automation triggers delete', args: [triggerId], done: 'deleted trigger {id}' },
    handle: async (self, { actor, params }) => {
      await self.triggers.remove(actor, params.id)
      return noContent()
    },
  }),
  route({
    method: 'GET',
    path: '/api/automation/triggers/{id}/runs',
    area,
    summary: 'List the runs of a trigger, newest first',
    query: ListJobRunsQuery,
    replies: { 200: ListRunsReply },
    cli: {
      path: 'automation triggers history',
      args: [triggerId],
      view: { ...runRows, empty: 'No runs. This trigger has not fired yet.' },
    },
    handle: (self, { actor, params, query }) => ok({ runs: self.runs.ofTrigger(actor, params.id, query) }),
  }),
  route({
    method: 'POST',
    path: '/api/automation/events',
    audited: false,
    area,
    summary: 'Emit an event declared by the calling extension; only extensions may call this',
    body: EmitEventBody,
    bodyLimit: 80 * 1024,
    replies: { 201: EmitEventReply },
    handle: async (self, { actor, body }) => created({ event_id: (await self.emitted.request(actor, body)).id }),
  }),
]
