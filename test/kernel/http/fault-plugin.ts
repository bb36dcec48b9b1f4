import * as v from 'valibot'
import { describe } from '../../../kernel/kit/annotations/index.js'
import { StoreError } from '../../../kernel/platform.js'
import { defineErrors, definePlugin, KernelErrors, ok, type Plugin, routeOf } from '../../../kernel/plugin.js'

const Errors = defineErrors({
  who_are_you: { status: 401, message: 'say who you are', next: 'send both identity headers' },
  too_often: { status: 429, message: 'too many requests' },
})

/** What each of the routes `/api/faults/{name}` throws. */
const thrown: Readonly<Record<string, () => unknown>> = {
  unauthorized: () => Errors.who_are_you(),
  forbidden: () => KernelErrors.forbidden(),
  conflict: () => KernelErrors.version_conflict(),
  often: () => Errors.too_often(undefined, { retryAfter: 7 }),
  unavailable: () => KernelErrors.unavailable(undefined, { retryAfter: 2 }),
  error: () => new Error('hunter2 in /home/someone/.svc/daemon.db'),
  text: () => 'hunter2',
  'read-only': () => Object.assign(new Error('EROFS: read-only file system, mkdir'), { code: 'EROFS' }),
  unwritable: () => new StoreError('file_unwritable', 'config.json cannot be written: EBUSY', 'look at it'),
  nothing: () => undefined,
  status: () => Object.assign(new Error('hunter2'), { statusCode: 418, status: 418, code: 'EACCES' }),
}

const route = routeOf<unknown>(describe('Test'))
const name = v.object({ name: v.string() })

/** A plugin that answers with every error there is. */
export const faults: Plugin = definePlugin({
  name: 'faults',
  version: '1.0.0',
  service: async () => class {},
}).surface({
  errors: [Errors],
  routes: [
    route({
      method: 'GET',
      path: '/api/faults/{name}',
      summary: 'Fails',
      query: v.object({ limit: v.optional(v.pipe(v.string(), v.regex(/^\d+$/))) }),
      replies: { 200: name },
      handle: (_self, { params }) => {
        if (Object.hasOwn(thrown, params.name)) throw thrown[params.name]?.()
        return ok({ name: params.name })
      },
    }),
    route({
      method: 'PUT',
      path: '/api/faults/{name}',
      summary: 'Takes a body',
      invalid: 422,
      body: v.strictObject({
        token: v.pipe(v.string(), v.regex(/^tok_/)),
        pin: v.optional(v.picklist([1, 2])),
        kind: v.optional(v.picklist(['a', 'b'])),
        deep: v.optional(v.unknown()),
      }),
      bodyLimit: 64 * 1024,
      replies: { 200: name },
      handle: (_self, { params }) => ok({ name: params.name }),
    }),
    route({
      method: 'POST',
      path: '/api/faults/{name}',
      summary: 'Takes no body',
      replies: { 200: name },
      handle: (_self, { params }) => ok({ name: params.name }),
    }),
    route({
      method: 'GET',
      path: '/api/socket-only',
      summary: 'For one door',
      listeners: 'socket',
      replies: { 200: name },
      handle: () => ok({ name: 'socket' }),
    }),
    route({
      method: 'GET',
      path: '/api/actor',
      summary: 'Who asks',
      privileged: true,
      replies: { 200: v.unknown() },
      handle: (_self, { actor: { cause: _, ...actor }, door }) => ok({ actor, door }),
    }),
    route({
      method: 'GET',
      path: '/api/silent',
      summary: 'Returns nothing',
      replies: { 200: name },
      handle: () => undefined as never,
    }),
    route({
      method: 'GET',
      path: '/api/wrong',
      summary: 'Does not keep its word',
      replies: { 200: name },
      handle: () => ok({ name: 1 as never }),
    }),
  ],
}) as Plugin
