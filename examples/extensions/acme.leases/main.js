import { cli, describe, LeaseTable } from 'svc/kit'
import { created, definePlugin, noContent, ok, routeOf, streamed, surfaceOf } from 'svc/plugin'
import { Checks } from 'svc/plugins/daemon'
import { Events } from 'svc/plugins/events'
import * as v from 'valibot'
import { Changed, DefaultSeconds, Errors, Key, Leases, Seconds, SigningKey, TABLE } from './declared.js'

const route = routeOf(describe('Leases'))
const { contribute, tap } = surfaceOf()

const base = '/api/ext/acme.leases'
const Lease = v.object({ key: v.string(), holder: v.string(), fence: v.number(), expires_at: v.string() })
const Token = v.pipe(v.string(), v.minLength(1), v.maxLength(1000))
/** The values of a query arrive as strings; the schema makes numbers of them. */
const Limit = v.pipe(v.string(), v.regex(/^\d{1,3}$/), v.transform(Number), v.number(), v.minValue(1), v.maxValue(200))
const Frame = v.object({ id: v.string(), event: v.picklist(['snapshot', 'changed']), data: v.unknown() })

export default definePlugin({
  name: 'acme.leases',
  version: '1.0.0',
  requires: { events: Events },
  provides: Leases,
  service: () => import('./leases.js').then(module => module.LeaseService),
}).surface({
  tables: [
    LeaseTable.migration('001', TABLE),
    { id: '002', sql: 'CREATE TABLE acme_leases_checkpoint (key TEXT PRIMARY KEY, text TEXT NOT NULL) STRICT' },
  ],
  settings: [DefaultSeconds, SigningKey],
  errors: [Errors],
  events: [Changed],
  taps: [
    tap(
      Events,
      events => events.of(Changed),
      service => () => service.changed(),
    ),
  ],
  services: [{ name: 'expire', run: (service, signal) => service.expire(signal) }],
  registries: [
    contribute(Checks, service => [{ id: 'acme.leases.key', category: 'acme', run: () => service.check() }]),
  ],
  routes: [
    route({
      method: 'POST',
      path: `${base}/leases`,
      summary: 'Claim a lease',
      body: v.strictObject({ key: Key, holder: Key, seconds: v.optional(Seconds) }),
      replies: { 201: v.object({ ...Lease.entries, token: v.string(), checkpoint: v.nullable(v.string()) }) },
      with: [
        cli('acme leases claim', {
          args: [
            { name: 'key', in: 'body' },
            { name: 'holder', in: 'body' },
          ],
          view: { text: 'token' },
        }),
      ],
      handle: async (service, { body, actor }) => created(await service.claim(body, actor)),
    }),
    route({
      method: 'GET',
      path: `${base}/leases`,
      summary: 'List the leases that are held',
      query: v.object({ holder: v.optional(Key), cursor: v.optional(v.string()), limit: v.optional(Limit, '50') }),
      replies: {
        200: v.object({ leases: v.array(Lease), has_more: v.boolean(), next_cursor: v.optional(v.string()) }),
      },
      with: [
        cli('acme leases list', {
          view: {
            rows: 'leases',
            columns: [
              { header: 'KEY', path: 'key' },
              { header: 'HOLDER', path: 'holder' },
              { header: 'EXPIRES', path: 'expires_at', as: 'time' },
            ],
            empty: 'No leases are held.',
          },
        }),
      ],
      handle: (service, { query, actor }) => ok(service.list(query, actor)),
    }),
    route({
      method: 'PUT',
      path: `${base}/checkpoint`,
      summary: 'Save how far the holder of a lease got, and renew the lease',
      body: v.strictObject({
        token: Token,
        text: v.pipe(v.string(), v.maxLength(10_000)),
        seconds: v.optional(Seconds),
      }),
      replies: { 200: Lease },
      handle: async (service, { body }) => ok(await service.beat(body)),
    }),
    route({
      method: 'POST',
      path: `${base}/releases`,
      summary: 'Release a lease',
      body: v.strictObject({ token: Token }),
      replies: { 204: null },
      with: [cli('acme leases release', { args: [{ name: 'token', in: 'body' }], done: 'released' })],
      handle: async (service, { body, actor }) => noContent(await service.release(body, actor)),
    }),
    route({
      method: 'GET',
      path: `${base}/changes`,
      summary: 'Follow the leases that are claimed, released or expire',
      headers: { 'Last-Event-ID': { required: false } },
      contentType: 'text/event-stream',
      replies: { 200: v.string() },
      frames: Frame,
      handle: (service, { headers, signal }) => streamed(service.changes(headers['last-event-id'], signal)),
    }),
  ],
})
