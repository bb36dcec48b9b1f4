import { cli, describe, runsCode } from '../../../kernel/kit/annotations/index.js'
import { Callers } from '../../../kernel/platform.js'
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
import type { AuthService } from './service.js'

const route = routeOf<AuthService>(describe('Authentication'))
const { contribute } = surfaceOf<AuthService>()
/** Routes about credentials take the operator token on both doors, and tell of faults in a shape of their own. */
const credentials = {
  headers: { Authorization: { required: true } },
  faults: {
    reply: AuthError,
    body: ({ message, code, next }: Fault) => ({ error: message, code, ...(next ? { details: next } : {}) }),
  },
} as const
const command = { load: () => import('./commands.js') }

export default definePlugin({
  name: 'auth',
  version: '0.1.0',
  requires: { callers: Callers },
  provides: Auth,
  service: () => import('./service.js').then(module => module.AuthService),
}).surface({
  tables: keyMigrations,
  errors: [AuthErrors],
  secrets: [self => self.hidden],
  hooks: {
    authenticate: (self, incoming) => self.authenticate(incoming),
    replied: (self, exchange) => self.unknown.note(exchange),
  },
  registries: [
    contribute(Checks, self => [{ id: 'auth', category: 'auth', run: async () => self.unknown.findings() }]),
  ],
  commands: [
    {
      ...command,
      path: 'auth token',
      summary: 'Print the operator token, which programs send over HTTP',
      options: [
        { name: 'rotate', type: 'boolean', summary: 'generate a new token first; the old one becomes invalid' },
      ],
    },
    {
      ...command,
      path: 'auth key create',
      summary: 'Create an API key and print it once',
      args: [{ name: 'name', optional: true, summary: 'what the key is for; no two keys have one name' }],
    },
    { ...command, path: 'auth key list', summary: 'List API keys and when they were last used' },
    {
      ...command,
      path: 'auth key delete',
      summary: 'Delete an API key and end its open requests',
      args: [{ name: 'id', summary: 'id or name of a key: svc auth key list' }],
    },
  ],
  routes: [
    route({
      ...credentials,
      method: 'POST',
      path: '/api/v0/auth/generate',
      with: [undo({ by: 'never', why: 'a key may be in use already; delete it: svc auth key delete' })],
      summary: 'Create an API key; only this reply contains it',
      privileged: true,
      body: GenerateBody,
      bodyOptional: true,
      replies: { 201: GenerateReply },
      handle: async (self, { headers, body }) => {
        self.mustBeOperator(headers.authorization)
        const { id, apiKey } = await self.createKey(body?.name?.trim() || undefined)
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
      handle: (self, { headers }) => {
        self.mustBeOperator(headers.authorization)
        const keys = self.keys()
        return ok({ data: { keys }, message: `${keys.length} ${keys.length === 1 ? 'key' : 'keys'}` })
      },
    }),
    route({
      ...credentials,
      method: 'DELETE',
      path: '/api/v0/auth/keys/{id}',
      with: [
        undo({ by: 'never', why: 'a deleted key is not kept; create another one: svc auth key create' }),
        runsCode(false),
      ],
      summary: 'Delete an API key and end its open requests',
      privileged: true,
      essential: true,
      replies: { 200: AuthMessage },
      handle: async (self, { headers, params }) => {
        self.mustBeOperator(headers.authorization)
        return ok({ message: `deleted ${await self.deleteKey(params.id)}` })
      },
    }),
    route({
      ...credentials,
      method: 'POST',
      path: '/api/v0/auth/rotate',
      with: [undo({ by: 'never', why: 'the former token is not kept; rotate it again: svc auth token --rotate' })],
      summary: 'Rotate the operator token; the old one becomes invalid',
      privileged: true,
      replies: { 200: AuthMessage },
      handle: async (self, { headers, id }) => {
        await self.rotate(id, headers.authorization)
        return ok({ message: 'the operator token was rotated; svc auth token prints the new one' })
      },
    }),
    route({
      method: 'GET',
      path: '/api/auth/matrix',
      summary: 'List which callers may use each route',
      replies: { 200: MatrixReply },
      with: [
        cli('auth matrix', {
          view: {
            rows: 'routes',
            columns: [
              { header: 'Path', path: 'path' },
              { header: 'Method', path: 'method' },
              { header: 'Class', path: 'class' },
              { header: 'Agent', path: 'access.agent_session' },
              { header: 'Code', path: 'runs_code' },
            ],
          },
        }),
      ],
      handle: self => ok(self.matrix()),
    }),
  ],
})
