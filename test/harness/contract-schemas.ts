import type * as v from 'valibot'
import * as agents from '../../schemas/agents.js'
import * as automation from '../../schemas/automation.js'
import * as bridges from '../../schemas/bridges.js'
import * as daemon from '../../schemas/daemon.js'
import * as install from '../../schemas/extensions/install.js'
import * as extensions from '../../schemas/extensions.js'
import * as providers from '../../schemas/providers.js'
import * as resources from '../../schemas/resources.js'
import * as sessions from '../../schemas/sessions.js'
import * as vault from '../../schemas/vault.js'
import * as windows from '../../schemas/window-manager.js'
import * as workspaces from '../../schemas/workspaces.js'

export interface RouteSchemas {
  readonly query?: v.GenericSchema
  readonly body?: v.GenericSchema
  readonly replies?: Readonly<Record<number, v.GenericSchema>>
}

const session = '/api/workspaces/{workspace_id}/sessions/{session_id}'
const windowManager = '/api/workspaces/{workspace_id}/window-manager'
const models = '/api/model-catalog'
const suggestions = '/api/workspaces/{workspace_id}/automation/suggestions'

/** Which of our schemas speaks for which part of which route of the contract. */
export const routeSchemas: Readonly<Record<string, RouteSchemas>> = {
  'GET /api/resources': { query: resources.ListRecordsQuery, replies: { 200: resources.ListRecordsReply } },
  'GET /api/resources/{kind}': { query: resources.ListRecordsQuery, replies: { 200: resources.ListRecordsReply } },
  'GET /api/resources/{kind}/{id}': { replies: { 200: resources.RecordReply } },
  'PUT /api/resources/{kind}/{id}': {
    body: resources.PutRecordBody,
    replies: { 200: resources.RecordReply, 201: resources.RecordReply },
  },
  'DELETE /api/resources/{kind}/{id}': { body: resources.DeleteRecordBody },

  'GET /api/status': { query: daemon.StatusQuery, replies: { 200: daemon.StatusReply } },
  'GET /api/status/identity': { replies: { 200: daemon.IdentityReply } },
  'GET /api/doctor': { query: daemon.DoctorQuery, replies: { 200: daemon.DoctorReply } },
  'POST /api/drain': { replies: { 200: daemon.DrainReply } },
  'POST /api/undrain': { replies: { 200: daemon.DrainReply } },

  'GET /api/workspaces': { replies: { 200: workspaces.ListWorkspacesReply } },
  'POST /api/workspaces': { body: workspaces.CreateWorkspaceBody, replies: { 201: workspaces.WorkspaceReply } },
  'POST /api/workspaces/resolve': {
    body: workspaces.ResolveWorkspaceBody,
    replies: { 200: workspaces.WorkspaceReply },
  },
  'GET /api/workspaces/{id}': { replies: { 200: workspaces.WorkspaceDetail } },
  'PATCH /api/workspaces/{id}': { body: workspaces.PatchWorkspaceBody, replies: { 200: workspaces.WorkspaceReply } },
  'DELETE /api/workspaces/{id}': {},

  'GET /api/vault/secrets': { query: vault.VaultSecretsQuery, replies: { 200: vault.VaultSecretsReply } },
  'PUT /api/vault/secrets': { body: vault.PutVaultSecretBody, replies: { 200: vault.VaultSecretReply } },
  'DELETE /api/vault/secrets': { query: vault.VaultRefQuery },
  'GET /api/vault/secrets/metadata': { query: vault.VaultRefQuery, replies: { 200: vault.VaultSecretReply } },

  'GET /api/extensions': { replies: { 200: extensions.ListExtensionsReply } },
  'POST /api/extensions': { body: install.InstallExtensionBody, replies: { 201: extensions.ExtensionReply } },
  'GET /api/extensions/{name}': { replies: { 200: extensions.ExtensionReply } },
  'PUT /api/extensions/{name}': {
    body: install.UpdateExtensionBody,
    replies: { 200: extensions.UpdateExtensionReply },
  },
  'DELETE /api/extensions/{name}': { replies: { 200: extensions.RemoveExtensionReply } },
  'POST /api/extensions/{name}/disable': { replies: { 200: extensions.ExtensionReply } },
  'POST /api/extensions/{name}/enable': { replies: { 200: extensions.ExtensionReply } },
  'GET /api/extensions/{name}/provenance': { replies: { 200: extensions.ProvenanceReply } },
  'GET /api/extensions/commands': {
    query: extensions.ExtensionCommandsQuery,
    replies: { 200: extensions.ExtensionCommandsReply },
  },
  'POST /api/extensions/dev': {
    query: extensions.ExtensionWorkspaceQuery,
    body: extensions.LinkExtensionBody,
    replies: { 201: extensions.DevExtensionReply },
  },
  'GET /api/extensions/{name}/inventory': { replies: { 200: extensions.ExtensionInventoryReply } },
  'GET /api/extensions/{name}/logs': {
    query: extensions.ExtensionLogsQuery,
    replies: { 200: extensions.ExtensionLogsReply },
  },
  'GET /api/extensions/{name}/preview': { replies: { 200: extensions.ExtensionPreviewReply } },
  'POST /api/extensions/{name}/reload': {
    query: extensions.ExtensionWorkspaceQuery,
    body: extensions.ReloadExtensionBody,
    replies: { 200: extensions.DevExtensionReply },
  },
  'GET /api/extensions/{name}/secrets': {
    query: extensions.ExtensionWorkspaceQuery,
    replies: { 200: extensions.ExtensionSecretsReply },
  },
  'PUT /api/extensions/{name}/secrets': {
    query: extensions.ExtensionWorkspaceQuery,
    body: extensions.PutExtensionSecretsBody,
    replies: { 200: extensions.ExtensionSecretsReply },
  },
  'DELETE /api/extensions/{name}/secrets/{env_name}': { query: extensions.ExtensionWorkspaceQuery },

  'GET /api/agents': { query: agents.ListAgentsQuery, replies: { 200: agents.ListAgentsReply } },
  'POST /api/agents': { body: agents.CreateAgentBody, replies: { 201: agents.AgentReply } },
  'GET /api/agents/catalog': { query: agents.AgentCatalogQuery, replies: { 200: agents.AgentCatalogReply } },
  'GET /api/agents/{name}': { query: agents.ListAgentsQuery, replies: { 200: agents.AgentReply } },
  'PUT /api/agents/{name}': { body: agents.PutAgentBody, replies: { 200: agents.AgentReply } },
  'DELETE /api/agents/{name}': { query: agents.ListAgentsQuery, replies: { 200: agents.DeleteAgentReply } },
  'POST /api/agents/{name}/duplicate': { body: agents.DuplicateAgentBody, replies: { 201: agents.AgentReply } },

  'GET /api/bridges': { query: bridges.ListBridgesQuery, replies: { 200: bridges.ListBridgesReply } },
  'POST /api/bridges': { body: bridges.CreateBridgeBody, replies: { 201: bridges.BridgeReply } },
  'GET /api/bridges/health/stream': { query: bridges.BridgeHealthQuery, replies: { 200: bridges.BridgeHealthChange } },
  'GET /api/bridges/providers': { replies: { 200: bridges.BridgeProvidersReply } },
  'GET /api/bridges/providers/chatprovider/manifest': {
    query: bridges.PlatformManifestQuery,
    replies: { 200: bridges.PlatformManifestReply },
  },
  'GET /api/bridges/{id}': { replies: { 200: bridges.BridgeReply } },
  'PATCH /api/bridges/{id}': { body: bridges.PatchBridgeBody, replies: { 200: bridges.BridgeReply } },
  'POST /api/bridges/{id}/disable': { replies: { 200: bridges.BridgeReply } },
  'POST /api/bridges/{id}/enable': { replies: { 200: bridges.BridgeReply } },
  'POST /api/bridges/{id}/restart': { replies: { 200: bridges.BridgeReply } },
  'POST /api/bridges/{id}/resolve': {
    body: bridges.ResolveBridgeTargetBody,
    replies: {
      200: bridges.ResolveBridgeTargetReply,
      404: bridges.ResolveBridgeTargetFailure,
      422: bridges.ResolveBridgeTargetFailure,
    },
  },
  'GET /api/bridges/{id}/secret-bindings': { replies: { 200: bridges.BridgeSecretBindingsReply } },
  'PUT /api/bridges/{id}/secret-bindings/{binding_name}': {
    body: bridges.PutBridgeSecretBody,
    replies: { 200: bridges.BridgeSecretBindingReply },
  },
  'DELETE /api/bridges/{id}/secret-bindings/{binding_name}': {},
  'POST /api/bridges/{id}/send-test': { body: bridges.SendTestBody, replies: { 200: bridges.SendTestReply } },
  'GET /api/bridges/{id}/targets': {
    query: bridges.ListBridgeTargetsQuery,
    replies: { 200: bridges.ListBridgeTargetsReply },
  },
  'POST /api/bridges/{id}/test-delivery': {
    body: bridges.TestDeliveryBody,
    replies: { 200: bridges.TestDeliveryReply },
  },
  'POST /api/bridges/{id}/verify': { replies: { 200: bridges.VerifyBridgeReply } },
  'POST /api/bridges/{id}/webhook/register': { replies: { 200: bridges.RegisterWebhookReply } },

  'GET /api/automation/jobs': { query: automation.ListJobsQuery, replies: { 200: automation.ListJobsReply } },
  'POST /api/automation/jobs': { body: automation.CreateJobBody, replies: { 201: automation.JobReply } },
  'GET /api/automation/jobs/{id}': { replies: { 200: automation.JobReply } },
  'PATCH /api/automation/jobs/{id}': { body: automation.PatchJobBody, replies: { 200: automation.JobReply } },
  'DELETE /api/automation/jobs/{id}': {},
  'GET /api/automation/jobs/{id}/runs': {
    query: automation.ListJobRunsQuery,
    replies: { 200: automation.ListRunsReply },
  },
  'POST /api/automation/jobs/{id}/trigger': { replies: { 200: automation.RunReply } },
  'GET /api/automation/runs': { query: automation.ListRunsQuery, replies: { 200: automation.ListRunsReply } },
  'GET /api/automation/runs/{id}': { replies: { 200: automation.RunReply } },
  'GET /api/automation/triggers': {
    query: automation.ListTriggersQuery,
    replies: { 200: automation.ListTriggersReply },
  },
  'POST /api/automation/triggers': { body: automation.CreateTriggerBody, replies: { 201: automation.TriggerReply } },
  'GET /api/automation/triggers/{id}': { replies: { 200: automation.TriggerReply } },
  'PATCH /api/automation/triggers/{id}': {
    body: automation.PatchTriggerBody,
    replies: { 200: automation.TriggerReply },
  },
  'DELETE /api/automation/triggers/{id}': {},
  'GET /api/automation/triggers/{id}/runs': {
    query: automation.ListJobRunsQuery,
    replies: { 200: automation.ListRunsReply },
  },
  'POST /api/webhooks/global/{endpoint}': { replies: { 200: automation.WebhookReply } },
  'POST /api/webhooks/workspaces/{workspace_id}/{endpoint}': { replies: { 200: automation.WebhookReply } },
  [`GET ${suggestions}`]: {
    query: automation.ListSuggestionsQuery,
    replies: { 200: automation.ListSuggestionsReply },
  },
  [`POST ${suggestions}/{suggestion_id}/accept`]: { replies: { 200: automation.AcceptSuggestionReply } },
  [`POST ${suggestions}/{suggestion_id}/dismiss`]: { replies: { 200: automation.SuggestionReply } },

  'GET /api/providers': { replies: { 200: providers.ListProvidersReply } },
  'GET /api/providers/{provider_id}': { replies: { 200: providers.Provider } },
  'POST /api/providers/{provider_id}/auth/probe': { replies: { 200: providers.ProbeProviderReply } },
  [`GET ${models}/models`]: { query: providers.ListModelsQuery, replies: { 200: providers.ListModelsReply } },
  [`POST ${models}/models/refresh`]: {
    body: providers.RefreshModelsBody,
    replies: { 200: providers.RefreshModelsReply, 503: providers.RefreshModelsReply },
  },
  [`GET ${models}/providers/{provider_id}/models`]: {
    query: providers.ListProviderModelsQuery,
    replies: { 200: providers.ListModelsReply },
  },
  [`POST ${models}/providers/{provider_id}/models/curate`]: {
    body: providers.CurateModelBody,
    replies: { 200: providers.CurateModelReply },
  },
  [`POST ${models}/providers/{provider_id}/models/refresh`]: {
    body: providers.RefreshModelsBody,
    replies: { 200: providers.RefreshModelsReply, 503: providers.RefreshModelsReply },
  },
  [`GET ${models}/providers/{provider_id}/models/status`]: { replies: { 200: providers.ListModelSourcesReply } },
  [`GET ${models}/sources/status`]: { replies: { 200: providers.ListModelSourcesReply } },
  'GET /api/openai/v1/models': {
    query: providers.ListOpenAiModelsQuery,
    replies: { 200: providers.ListOpenAiModelsReply, 400: providers.OpenAiErrorBody },
  },

  'GET /api/sessions': { query: sessions.ListSessionsQuery, replies: { 200: sessions.ListSessionsReply } },
  'POST /api/sessions': { body: sessions.CreateSessionBody, replies: { 201: sessions.SessionReply } },
  'GET /api/sessions/{session_id}': { query: sessions.GetSessionQuery, replies: { 200: sessions.SessionReply } },
  'GET /api/sessions/{session_id}/owner': { replies: { 200: sessions.SessionOwnerReply } },
  [`GET ${session}`]: { query: sessions.GetSessionQuery, replies: { 200: sessions.SessionReply } },
  [`PATCH ${session}`]: { body: sessions.PatchSessionBody, replies: { 200: sessions.SessionDetailReply } },
  [`DELETE ${session}`]: {},
  [`POST ${session}/approve`]: { body: sessions.ApproveBody, replies: { 200: sessions.ApproveReply } },
  [`POST ${session}/attach`]: { body: sessions.AttachSessionBody, replies: { 200: sessions.AttachSessionReply } },
  [`GET ${session}/events`]: {
    query: sessions.ListSessionEventsQuery,
    replies: { 200: sessions.ListSessionEventsReply },
  },
  [`GET ${session}/health`]: { replies: { 200: sessions.SessionHealthReply } },
  [`GET ${session}/history`]: {
    query: sessions.ListSessionEventsQuery,
    replies: { 200: sessions.SessionHistoryReply },
  },
  [`POST ${session}/prompt`]: {
    body: sessions.PromptBody,
    replies: { 200: sessions.PromptReply, 202: sessions.PromptReply },
  },
  [`POST ${session}/prompt/cancel`]: { replies: { 200: sessions.CancelPromptReply } },
  [`GET ${session}/prompt/queue`]: { replies: { 200: sessions.ListQueuedPromptsReply } },
  [`PUT ${session}/prompt/queue/{queue_entry_id}`]: {
    body: sessions.PutQueuedPromptBody,
    replies: { 200: sessions.QueuedPromptReply },
  },
  [`DELETE ${session}/prompt/queue/{queue_entry_id}`]: { replies: { 200: sessions.PromptReceiptReply } },
  [`POST ${session}/prompt/queue/{queue_entry_id}/steer`]: {
    body: sessions.SteerQueuedPromptBody,
    replies: { 202: sessions.SteerQueuedPromptReply },
  },
  [`POST ${session}/repair`]: { query: sessions.RepairSessionQuery, replies: { 200: sessions.RepairSessionReply } },
  [`GET ${session}/status`]: { replies: { 200: sessions.SessionStatusReply } },
  [`POST ${session}/steer`]: { body: sessions.SteerSessionBody, replies: { 202: sessions.PromptReceiptReply } },
  [`POST ${session}/stop`]: {},
  [`GET ${session}/stream`]: { query: sessions.SessionStreamQuery, replies: { 200: sessions.SessionStreamFrames } },
  [`GET ${session}/transcript`]: { query: sessions.TranscriptQuery, replies: { 200: sessions.TranscriptReply } },
  [`GET ${session}/usage`]: { replies: { 200: sessions.SessionUsageReply } },
  [`POST ${session}/wait`]: { body: sessions.WaitSessionBody, replies: { 200: sessions.WaitSessionReply } },

  [`GET ${windowManager}`]: { replies: { 200: windows.WindowManagerState, 404: windows.WindowManagerErrorBody } },
  [`GET ${windowManager}/clients`]: { replies: { 200: windows.ListWindowClientsReply } },
  [`POST ${windowManager}/clients`]: { body: windows.AttachClientBody, replies: { 201: windows.WindowClient } },
  [`DELETE ${windowManager}/clients/{client_id}`]: {},
  [`POST ${windowManager}/commands`]: {
    body: windows.WindowCommandBody,
    replies: { 200: windows.WindowCommandReply, 409: windows.WindowManagerErrorBody },
  },
  [`GET ${windowManager}/layout`]: { replies: { 200: windows.LayoutDocument } },
  [`PUT ${windowManager}/layout`]: { body: windows.PutLayoutBody, replies: { 200: windows.WindowCommandReply } },
  [`GET ${windowManager}/layout-profiles`]: { replies: { 200: windows.ListLayoutProfilesReply } },
  [`PUT ${windowManager}/layout-profiles/{profile_id}`]: {
    body: windows.PutLayoutProfileBody,
    replies: { 200: windows.LayoutProfileReply, 201: windows.LayoutProfileReply },
  },
  [`DELETE ${windowManager}/layout-profiles/{profile_id}`]: { body: windows.DeleteLayoutProfileBody },
  [`POST ${windowManager}/layout/validate`]: {
    body: windows.ValidateLayoutBody,
    replies: { 200: windows.ValidateLayoutReply },
  },
  [`POST ${windowManager}/preview`]: { body: windows.WindowCommandBody, replies: { 200: windows.WindowPreviewReply } },
  // The contract's 101 is a WebSocket; these frames come as server-sent events.
  [`GET ${windowManager}/stream`]: { query: windows.WindowStreamQuery, replies: { 101: windows.WindowStreamFrame } },
}

/** Areas of which every route has its schemas here, but for the paths that match. */
export const wholeAreas: Readonly<Record<string, RegExp | undefined>> = {
  'Daemon status and control': undefined,
  'Desired-state resources': undefined,
  Workspaces: undefined,
  'Window manager': undefined,
  Agents: /heartbeat/,
  Automation: undefined,
  'Automation (triggers, webhooks, suggestions)': undefined,
  'Models and providers': undefined,
}
