import { cli, describe, show, throws, tool } from '../../../kernel/kit/annotations/index.js'
import { definePlugin, ok, routeOf } from '../../../kernel/plugin.js'
import {
  CurateModelBody,
  CurateModelReply,
  ListModelSourcesReply,
  ListModelsQuery,
  ListModelsReply,
  ListOpenAiModelsQuery,
  ListOpenAiModelsReply,
  ListProviderModelsQuery,
  OpenAiErrorBody,
  RefreshModelsBody,
  RefreshModelsReply,
} from '../../../schemas/providers.js'
import { undo } from '../../desk/changes/api.js'
import { ProviderErrors, Providers } from '../providers/api.js'
import { ModelErrors, Models } from './api.js'
import { needs } from './needs.js'
import type { ModelsService } from './service.js'
import { modelTables } from './table.js'
import { ofCuration } from './undo.js'

const route = routeOf<ModelsService>(describe('Models and providers'))
const provider = { name: 'provider', summary: 'name of a provider; default: all', optional: true } as const
const columns = [
  { of: 'provider_id', header: 'Provider' },
  { of: 'model_id', header: 'Model' },
  { of: 'display_name', header: 'Name' },
  { of: 'availability_state', header: 'State' },
  { of: 'context_window', header: 'Context' },
  { of: 'default_reasoning_effort', header: 'Effort' },
  'featured',
  'hidden',
] as const

export default definePlugin({
  name: 'models',
  version: '0.1.0',
  requires: needs,
  provides: Models,
  service: () => import('./service.js').then(module => module.ModelsService),
}).surface({
  errors: [ModelErrors],
  tables: [{ id: '001-models', sql: modelTables }],
  // Sources that name the provider of each model are kept.
  owned: [
    {
      ...{ by: Providers, table: 'models_source', column: 'provider' },
      forget: (service, { id }) => service.forget(`${id}`),
    },
  ],
  commands: [
    {
      path: 'provider models refresh',
      summary: 'Refresh the models that agents, endpoints and extensions offer',
      args: [provider],
      options: [
        { name: 'source', type: 'text', summary: 'only refresh this source: svc provider models status' },
        { name: 'force', type: 'boolean', summary: 'refresh even if it was refreshed within the last minute' },
      ],
      load: () => import('./commands.js').then(module => ({ run: module.runRefresh })),
    },
    {
      path: 'provider models status',
      summary: 'Show the sources of models and when each was refreshed',
      args: [provider],
      load: () => import('./commands.js').then(module => ({ run: module.runStatus })),
    },
  ],
  routes: [
    route({
      method: 'GET',
      path: '/api/model-catalog/models',
      summary: 'List the models of providers',
      query: ListModelsQuery,
      replies: { 200: ListModelsReply },
      with: [
        cli('provider models list', {
          args: [{ name: 'provider_id', in: 'query', optional: true, summary: 'name of a provider; default: all' }],
          view: show(ListModelsReply, 'models', columns, {
            empty: 'no models are known; refresh them: svc provider models refresh',
          }),
        }),
        tool('provider_models_list', ['provider_models']),
        throws(ProviderErrors.provider_not_found, ModelErrors.model_source_not_found),
      ],
      handle: async (service, { query }) => ok({ models: await service.show(query) }),
    }),
    route({
      method: 'POST',
      path: '/api/model-catalog/models/refresh',
      audited: false,
      with: [
        tool('provider_models_refresh', ['provider_models']),
        throws(ModelErrors.model_source_not_found, ModelErrors.model_source_failed),
      ],
      summary: 'Refresh all model sources',
      body: RefreshModelsBody,
      bodyOptional: true,
      replies: { 200: RefreshModelsReply, 503: RefreshModelsReply },
      handle: (service, { body }) => service.refresh(undefined, body ?? {}),
    }),
    route({
      method: 'GET',
      path: '/api/model-catalog/providers/{provider_id}/models',
      summary: 'List the models of one provider',
      query: ListProviderModelsQuery,
      replies: { 200: ListModelsReply },
      with: [throws(ProviderErrors.provider_not_found, ModelErrors.model_source_not_found)],
      handle: async (service, { params, query }) => ok({ models: await service.show({ ...query, ...params }) }),
    }),
    route({
      method: 'POST',
      path: '/api/model-catalog/providers/{provider_id}/models/curate',
      summary: 'Feature, hide or deprecate a model, or set its default effort',
      body: CurateModelBody,
      privileged: true,
      replies: { 200: CurateModelReply },
      with: [
        undo(ofCuration),
        cli('provider models set', {
          args: [
            { name: 'provider_id', summary: 'name of a provider' },
            { name: 'model_id', in: 'body', summary: 'id of a model: svc provider models list' },
          ],
          view: show(CurateModelReply, 'model', columns),
        }),
        tool('provider_models_curate', ['provider_models']),
        throws(ProviderErrors.provider_not_found, ModelErrors.model_not_found, ModelErrors.model_source_failed),
      ],
      handle: async (service, { params, body, actor }) => ok(await service.curate(params.provider_id, body, actor)),
    }),
    route({
      method: 'POST',
      path: '/api/model-catalog/providers/{provider_id}/models/refresh',
      audited: false,
      summary: 'Refresh the model sources of one provider',
      body: RefreshModelsBody,
      bodyOptional: true,
      replies: { 200: RefreshModelsReply, 503: RefreshModelsReply },
      with: [
        throws(ProviderErrors.provider_not_found, ModelErrors.model_source_not_found, ModelErrors.model_source_failed),
      ],
      handle: (service, { params, body }) => service.refresh(params.provider_id, body ?? {}),
    }),
    route({
      method: 'GET',
      path: '/api/model-catalog/providers/{provider_id}/models/status',
      summary: 'Show when the models of one provider were refreshed',
      replies: { 200: ListModelSourcesReply },
      with: [throws(ProviderErrors.provider_not_found)],
      handle: async (service, { params }) => ok({ sources: service.status(params.provider_id) }),
    }),
    route({
      method: 'GET',
      path: '/api/model-catalog/sources/status',
      with: [tool('provider_models_status', ['provider_models'])],
      summary: 'Show when each model source was refreshed',
      replies: { 200: ListModelSourcesReply },
      handle: async service => ok({ sources: service.status() }),
    }),
    route({
      method: 'GET',
      path: '/api/openai/v1/models',
      summary: 'List models in the format of OpenAI-compatible APIs',
      query: ListOpenAiModelsQuery,
      replies: { 200: ListOpenAiModelsReply },
      faults: {
        reply: OpenAiErrorBody,
        body: ({ message, code, status }) => ({
          error: { message, code, param: null, type: status < 500 ? 'invalid_request_error' : 'server_error' },
        }),
      },
      handle: async (service, { query }) => ok({ object: 'list', data: await service.openAi(query.provider_id) }),
    }),
  ],
})
