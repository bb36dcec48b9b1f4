import { describe, runsCode, throws } from '../../../kernel/kit/annotations/index.js'
import { command } from '../../../kernel/kit/commands/command-line.js'
import { created, definePlugin, noContent, ok, routeOf, surfaceOf } from '../../../kernel/plugin.js'
import {
  AddConsolePushReply,
  BeginConsoleBody,
  BeginConsoleReply,
  ConsoleLinkReply,
  ConsolePushBody,
  ConsolePushReply,
  ConsoleSessionsReply,
  EndConsoleReply,
} from '../../../schemas/daemon/console.js'
import { VaultErrors } from '../../access/vault/api.js'
import { NotificationChannels } from '../../reach/notifications/api.js'
import { undo } from '../changes/api.js'
import { ConsoleErrors } from './api.js'
import { needs } from './needs.js'
import { PushSettings } from './push/settings.js'
import type { ConsoleService } from './service.js'
import { migrations } from './sessions.js'

const route = routeOf<ConsoleService>(describe('Console'))
const { contribute } = surfaceOf<ConsoleService>()
/** Errors of the vault, which stores the private push key. */
const KEY = [VaultErrors.vault_secret_damaged, VaultErrors.vault_key_missing, VaultErrors.vault_key_wrong]
const login = command('open')

/** Files need no authentication: they are identical in every installation and contain no data. */
const file = {
  method: 'GET',
  public: true,
  headers: { 'Accept-Encoding': { required: false }, 'If-None-Match': { required: false } },
  with: [throws(ConsoleErrors.console_file_not_found, ConsoleErrors.console_not_built)],
} as const

/** The console in the browser. */
export default definePlugin({
  name: 'console',
  version: '0.1.0',
  requires: needs,
  service: () => import('./service.js').then(module => module.ConsoleService),
}).surface({
  tables: migrations,
  errors: [ConsoleErrors],
  settings: Object.values(PushSettings),
  registries: [contribute(NotificationChannels, service => [service.push.channel])],
  services: [{ name: 'push', run: (service, signal) => service.push.run(signal) }],
  hooks: { authenticate: (service, incoming) => service.authenticate(incoming) },
  routes: [
    route({
      ...file,
      path: '/console',
      summary: 'Get the page of the console',
      // Pages of other sites may link to the console, because opening it changes nothing.
      navigation: true,
      contentType: 'text/html; charset=utf-8',
      replies: { 200: { as: 'bytes', types: ['text/html; charset=utf-8'] }, 304: null },
      handle: (service, { headers }) =>
        service.files.serve('index.html', { accepts: headers['accept-encoding'], known: headers['if-none-match'] }),
    }),
    route({
      ...file,
      path: '/console/assets/{name}',
      summary: 'Get a file of the console',
      replies: { 200: { as: 'bytes', types: ['application/octet-stream', '*/*'] }, 304: null },
      handle: (service, { params, headers }) =>
        service.files.serve(params.name, { accepts: headers['accept-encoding'], known: headers['if-none-match'] }),
    }),
    route({
      method: 'POST',
      path: '/api/console/links',
      summary: 'Make a link that opens the console once',
      privileged: true,
      replies: { 201: ConsoleLinkReply },
      with: [
        undo({ by: 'never', why: `a link ends by itself after five minutes; end all: ${command('open', '--revoke')}` }),
        throws(ConsoleErrors.console_operator_required, ConsoleErrors.console_unreachable),
      ],
      handle: (service, { actor }) => created(service.link(actor)),
    }),
    route({
      method: 'POST',
      path: '/api/console/sessions',
      summary: 'Exchange the code of a link for a session of the console',
      public: true,
      body: BeginConsoleBody,
      replies: { 201: BeginConsoleReply },
      with: [
        undo({ by: 'never', why: `a link is valid once; make another one: ${login}` }),
        throws(ConsoleErrors.console_link_invalid),
      ],
      handle: (service, { body }) => service.begin(body.code),
    }),
    route({
      method: 'GET',
      path: '/api/console/sessions',
      summary: 'List sessions of the console',
      replies: { 200: ConsoleSessionsReply },
      handle: (service, { actor }) => ok(service.list(actor)),
    }),
    route({
      method: 'DELETE',
      path: '/api/console/sessions/{id}',
      summary: 'End a session of the console; `current` is that of the caller',
      essential: true,
      replies: { 204: null },
      with: [
        undo({ by: 'never', why: `an ended session is not kept; open the console again: ${login}` }),
        runsCode(false),
        throws(ConsoleErrors.console_session_not_found),
      ],
      handle: async (service, { params, actor }) => {
        await service.end(params.id, actor)
        return noContent()
      },
    }),
    route({
      method: 'DELETE',
      path: '/api/console/sessions',
      summary: 'End all sessions and links of the console',
      essential: true,
      replies: { 200: EndConsoleReply },
      with: [
        undo({ by: 'never', why: `ended sessions are not kept; open the console again: ${login}` }),
        runsCode(false),
      ],
      handle: async (service, { actor }) => ok(await service.endAll(actor)),
    }),
    route({
      method: 'GET',
      path: '/api/console/push',
      summary: 'List browsers that get notifications by push',
      replies: { 200: ConsolePushReply },
      with: [throws(ConsoleErrors.console_push_off, ...KEY)],
      handle: async (service, { actor }) => ok(await service.push.list(service.sessionOf(actor))),
    }),
    route({
      method: 'POST',
      path: '/api/console/push',
      summary: 'Subscribe the calling browser to push',
      body: ConsolePushBody,
      replies: { 201: AddConsolePushReply },
      with: [
        undo({ by: 'never', why: 'the browser ends its subscription itself: DELETE /api/console/push/{id}' }),
        throws(
          ConsoleErrors.console_session_required,
          ConsoleErrors.console_push_off,
          ConsoleErrors.console_push_refused,
          ConsoleErrors.console_push_full,
        ),
      ],
      handle: async (service, { body, actor }) =>
        created({ subscription: await service.push.add(service.sessionOf(actor), body) }),
    }),
    route({
      method: 'DELETE',
      path: '/api/console/push/{id}',
      summary: 'End a subscription to push',
      replies: { 204: null },
      with: [
        undo({ by: 'never', why: 'only the browser can subscribe again' }),
        runsCode(false),
        throws(ConsoleErrors.console_push_not_found),
      ],
      handle: async (service, { params }) => {
        await service.push.remove(params.id)
        return noContent()
      },
    }),
  ],
})
