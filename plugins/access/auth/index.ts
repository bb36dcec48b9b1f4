import { cli, describe, runsCode, show, throws } from '../../../kernel/kit/annotations/index.js'
import { command, placeholder } from '../../../kernel/kit/commands/command-line.js'
import { created, definePlugin, type Fault, ok, routeOf, surfaceOf } from '../../../kernel/plugin.js'
import {
  AuthError,
  AuthMessage,
  GenerateBody,
  GenerateReply,
  KeysReply,
  MatrixReply,
} from '../../../schemas/daemon/auth.js'
import { undo } from '../../desk/changes/api.js'
import { Checks } from '../../desk/daemon/api.js'
import { Auth, AuthErrors } from './api.js'
import { keyMigrations } from './keys.js'
import { needs } from './needs.js'
import type { AuthService } from './service.js'

const route = routeOf<AuthService>(describe('Authentication'))
const { contribute } = surfaceOf<AuthService>()
/** Routes for credentials require the operator token on the socket and on TCP, and have their own error format. */
const credentials = {
  headers: { Authorization: { required: true } },
  faults: {
    reply: AuthError,
    body: ({ message, code, next }: Fault) => ({ error: message, code, ...(next ? { details: next } : {}) }),
  },
} as const
const module = { load: () => import('./commands.js') }

export default definePlugin({
  name: 'auth',
  version: '0.1.0',
  requires: needs,
  provides: Auth,
  service: () => import('./service.js').then(module => module.AuthService),
}).surface({
  tables: keyMigrations,
  errors: [AuthErrors],
  secrets: [service => service.hidden],
  hooks: {
    authenticate: (service, incoming) => service.authenticate(incoming),
    replied: (service, exchange) => service.unknown.note(exchange),
  },
  registries: [
    contribute(Checks, service => [{ id: 'auth', category: 'auth', run: async () => service.unknown.findings() }]),
  ],
  commands: [
    {
      ...module,
      path: 'auth token',
      summary: 'Print the operator token, which programs send over HTTP',
      options: [
        { name: 'rotate', type: 'boolean', summary: 'generate a new token first; the old one becomes invalid' },
      ],
    },
    {
      ...module,
      path: 'auth key create',
      summary: 'Create an API key and print it once',
      args: [{ name: 'name', optional: true, summary: 'name that says what the key is for; must be unique' }],
    },
    { ...module, path: 'auth key list', summary: 'List API keys and when they were last used' },
    {
      ...module,
      path: 'auth key delete',
      summary: 'Delete an API key and end its open requests',
      args: [{ name: 'id', summary: `id or name of a key: ${command('auth key list')}` }],
    },
  ],
  routes: [
    route({
      ...credentials,
      method: 'POST',
      path: '/api/v0/auth/generate',
      with: [
        undo({
          by: 'never',
          why: `a key may be in use already; delete it: ${command('auth key delete', placeholder('id'))}`,
        }),
        throws(AuthErrors.operator_token_required, AuthErrors.api_keys_full, AuthErrors.api_key_name_taken),
      ],
      summary: 'Create an API key; only this reply contains it',
      privileged: true,
      body: GenerateBody,
      bodyOptional: true,
      replies: { 201: GenerateReply },
      handle: async (service, { headers, body }) => {
        service.mustBeOperator(headers.authorization)
        const { id, apiKey } = await service.createKey(body?.name?.trim() || undefined)
        return created({ data: { api_key: apiKey, id }, message: 'keep the key: it is not shown again' })
      },
    }),
    route({
      ...credentials,
      method: 'GET',
      path: '/api/v0/auth/keys',
      summary: 'List API keys',
      privileged: true,
      replies: { 200: KeysReply },
      with: [throws(AuthErrors.operator_token_required)],
      handle: (service, { headers }) => {
        service.mustBeOperator(headers.authorization)
        const keys = service.keys()
        return ok({ data: { keys }, message: `${keys.length} ${keys.length === 1 ? 'key' : 'keys'}` })
      },
    }),
    route({
      ...credentials,
      method: 'DELETE',
      path: '/api/v0/auth/keys/{id}',
      with: [
        undo({ by: 'never', why: `a deleted key is not kept; create another one: ${command('auth key create')}` }),
        runsCode(false),
        throws(AuthErrors.operator_token_required, AuthErrors.api_key_not_found),
      ],
      summary: 'Delete an API key and end its open requests',
      privileged: true,
      essential: true,
      replies: { 200: AuthMessage },
      handle: async (service, { headers, params }) => {
        service.mustBeOperator(headers.authorization)
        return ok({ message: `deleted ${await service.deleteKey(params.id)}` })
      },
    }),
    route({
      ...credentials,
      method: 'POST',
      path: '/api/v0/auth/rotate',
      with: [
        undo({
          by: 'never',
          why: `the former token is not kept; rotate it again: ${command('auth token', '--rotate')}`,
        }),
        throws(AuthErrors.operator_token_required),
      ],
      summary: 'Rotate the operator token; the old one becomes invalid',
      privileged: true,
      replies: { 200: AuthMessage },
      handle: async (service, { headers, id }) => {
        await service.rotate(id, headers.authorization)
        return ok({ message: `the operator token was rotated; ${command('auth token')} prints the new one` })
      },
    }),
    route({
      method: 'GET',
      path: '/api/auth/matrix',
      summary: 'List which callers may use each route',
      replies: { 200: MatrixReply },
      with: [
        cli('auth matrix', {
          view: show(MatrixReply, 'routes', [
            'path',
            'method',
            'class',
            { of: 'access.agent_session', header: 'Agent' },
            { of: 'runs_code', header: 'Code' },
          ]),
        }),
      ],
      handle: service => ok(service.matrix()),
    }),
  ],
})
