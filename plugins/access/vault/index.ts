import { cli, describe, show, throws, tool } from '../../../kernel/kit/annotations/index.js'
import { command, placeholder } from '../../../kernel/kit/commands/command-line.js'
import { SecretResolvers } from '../../../kernel/kit/secret-ref.js'
import { definePlugin, noContent, ok, perConsumer, routeOf, surfaceOf } from '../../../kernel/plugin.js'
import {
  PutVaultSecretBody,
  RotateVaultReply,
  VaultRefQuery,
  VaultSecretReply,
  VaultSecretsQuery,
  VaultSecretsReply,
} from '../../../schemas/vault.js'
import { undo } from '../../desk/changes/api.js'
import { Checks, StatusMembers } from '../../desk/daemon/api.js'
import { Events } from '../../platform/events/api.js'
import {
  KEY_ERRORS,
  SecretOwners,
  Vault,
  VaultErrors,
  VaultKeyRotated,
  VaultSecretDeleted,
  VaultSecretPut,
  WRITE_ERRORS,
} from './api.js'
import { needs } from './needs.js'
import { migrations } from './rows.js'
import type { VaultService } from './service.js'

const route = routeOf<VaultService>(describe('Vault'))
const { contribute, tap } = surfaceOf<VaultService>()

const ref = { name: 'ref', in: 'query', summary: 'vault:<namespace>/<name>/…' } as const
const columns = [
  { of: 'ref', header: 'Reference' },
  'kind',
  { of: 'present', header: 'Readable' },
  'version',
  'updated_at~ago',
] as const

export default definePlugin({
  name: 'vault',
  version: '0.1.0',
  requires: needs,
  provides: perConsumer(Vault, (service: VaultService, consumer) => service.for(consumer)),
  service: () => import('./service.js').then(module => module.VaultService),
}).surface({
  declares: [SecretOwners],
  tables: migrations,
  secrets: [service => service.hidden.source],
  errors: [VaultErrors],
  events: [VaultSecretPut, VaultSecretDeleted, VaultKeyRotated],
  services: [{ name: 'hide', run: (service, signal) => service.run(signal) }],
  registries: [
    contribute(SecretResolvers, service => [service.resolver]),
    contribute(Checks, service => [{ id: 'vault.secrets', category: 'vault', run: () => service.check() }]),
    contribute(StatusMembers, service => [{ path: 'health', read: () => service.health() }]),
  ],
  hooks: {
    known: service => service.known(),
    written: (service, t, written) => service.written(t, written),
  },
  taps: [
    tap(
      Events,
      events => events.written,
      service => (t, event) => service.onEvent(t, event),
    ),
  ],
  commands: [
    {
      path: 'vault put',
      summary: 'Store a secret, read from standard input or a hidden prompt',
      args: [{ name: 'ref', summary: ref.summary }],
      options: [
        { name: 'kind', type: 'text', summary: 'a label, such as token or password' },
        { name: 'value-stdin', type: 'boolean', summary: 'read the value from standard input even on a terminal' },
        { name: 'allow-short', type: 'boolean', summary: 'accept a value of 4 to 7 bytes' },
      ],
      load: () => import('./commands.js').then(module => ({ run: module.runPut })),
    },
  ],
  routes: [
    route({
      method: 'GET',
      path: '/api/vault/secrets',
      summary: 'List secrets, without their values',
      privileged: true,
      query: VaultSecretsQuery,
      replies: { 200: VaultSecretsReply },
      with: [
        cli('vault list', {
          args: [
            { name: 'prefix', in: 'query', optional: true, summary: 'prefix of the reference, with or without vault:' },
          ],
          view: show(VaultSecretsReply, 'secrets', columns, {
            empty: `no secrets; store one: ${command('vault put', placeholder('ref'))}`,
          }),
        }),
        tool('vault_list', ['config'], { visibility: 'operator' }),
        throws(VaultErrors.vault_namespace_invalid),
      ],
      handle: async (service, { query }) => ok({ secrets: await service.list(query) }),
    }),
    route({
      method: 'PUT',
      path: '/api/vault/secrets',
      summary: 'Store a secret',
      privileged: true,
      body: PutVaultSecretBody,
      replies: { 200: VaultSecretReply },
      with: [undo({ by: 'never', why: 'the former value of a secret is not kept' }), throws(...WRITE_ERRORS)],
      handle: async (service, { body, actor }) => {
        const { ref, secret_value, kind, allow_short } = body
        return ok({ secret: await service.put(ref, secret_value, { kind, allowShort: allow_short, actor }) })
      },
    }),
    route({
      method: 'DELETE',
      path: '/api/vault/secrets',
      summary: 'Delete a secret',
      privileged: true,
      essential: true,
      query: VaultRefQuery,
      replies: { 204: null },
      with: [
        undo({ by: 'never', why: 'the value of a deleted secret is not kept' }),
        throws(VaultErrors.vault_ref_invalid, VaultErrors.vault_secret_not_found),
        cli('vault delete', { args: [ref], done: 'deleted {ref}' }),
      ],
      handle: async (service, { query, actor }) => {
        await service.remove(query.ref, actor)
        return noContent()
      },
    }),
    route({
      method: 'GET',
      path: '/api/vault/secrets/metadata',
      summary: 'Show a secret, without its value',
      privileged: true,
      query: VaultRefQuery,
      replies: { 200: VaultSecretReply },
      with: [
        cli('vault show', {
          args: [ref],
          view: show(VaultSecretReply, 'secret', [...columns, 'created_at~time']),
        }),
        tool('vault_info', ['config'], { visibility: 'operator' }),
        throws(VaultErrors.vault_ref_invalid, VaultErrors.vault_secret_not_found),
      ],
      handle: async (service, { query }) => ok({ secret: await service.metadata(query.ref) }),
    }),
    route({
      method: 'POST',
      path: '/api/vault/rotate',
      summary: 'Re-encrypt all secrets with a new key',
      privileged: true,
      replies: { 200: RotateVaultReply },
      with: [
        throws(VaultErrors.vault_key_external, ...KEY_ERRORS),
        undo({ by: 'never', why: 'the former key is not kept; the values of all secrets are unchanged' }),
        cli('vault rotate', {
          view: show(RotateVaultReply, '', [
            { of: 'key_id', header: 'New key' },
            { of: 'resealed', header: 'Secrets encrypted again' },
          ]),
        }),
      ],
      handle: async (service, { actor }) => ok(await service.rotate(actor)),
    }),
  ],
})
