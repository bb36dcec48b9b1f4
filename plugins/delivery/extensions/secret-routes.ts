import { describe, throws } from '../../../kernel/kit/annotations/index.js'
import { noContent, ok, routeOf } from '../../../kernel/plugin.js'
import { ExtensionSecretsReply, ExtensionWorkspaceQuery, PutExtensionSecretsBody } from '../../../schemas/extensions.js'
import { WRITE_ERRORS } from '../../access/vault/api.js'
import { undo } from '../../desk/changes/api.js'
import { ExtensionErrors, NAMED_ERRORS } from './errors.js'
import type { ExtensionsService } from './service.js'

const route = routeOf<ExtensionsService>(describe('Extensions'))

/** Routes for the variables of an extension. */
export const secretRoutes = [
  route({
    method: 'GET',
    path: '/api/extensions/{name}/secrets',
    with: [throws(...NAMED_ERRORS)],
    summary: 'List the variables that an extension declares and whether each is set; values are never shown',
    query: ExtensionWorkspaceQuery,
    replies: { 200: ExtensionSecretsReply },
    privileged: true,
    handle: async (service, { params, query }) =>
      ok(service.secrets.list(await service.choose(params.name, query.workspace))),
  }),
  route({
    method: 'PUT',
    path: '/api/extensions/{name}/secrets',
    with: [
      undo({
        by: 'never',
        why: 'the former source may be a secret, so it is not kept; set it again: svc extension info',
      }),
      throws(
        ...NAMED_ERRORS,
        ExtensionErrors.extension_env_undeclared,
        ExtensionErrors.extension_secret_foreign,
        ExtensionErrors.vault_unavailable,
        ...WRITE_ERRORS,
      ),
    ],
    summary: 'Set where the variables of an extension come from',
    query: ExtensionWorkspaceQuery,
    body: PutExtensionSecretsBody,
    replies: { 200: ExtensionSecretsReply },
    privileged: true,
    handle: async (service, { params, query, body, actor }) =>
      ok(await service.secrets.put(await service.choose(params.name, query.workspace), body, actor)),
  }),
  route({
    method: 'DELETE',
    path: '/api/extensions/{name}/secrets/{env_name}',
    with: [
      undo({
        by: 'never',
        why: 'the former source may be a secret, so it is not kept; set it again: svc extension info',
      }),
      throws(...NAMED_ERRORS, ExtensionErrors.extension_binding_not_found),
    ],
    summary: 'Remove the source of a variable of an extension',
    query: ExtensionWorkspaceQuery,
    replies: { 204: null },
    privileged: true,
    handle: async (service, { params, query }) => {
      await service.secrets.drop(await service.choose(params.name, query.workspace), params.env_name)
      return noContent()
    },
  }),
]
