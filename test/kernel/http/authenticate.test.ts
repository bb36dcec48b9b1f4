import { once } from 'node:events'
import { rm, writeFile } from 'node:fs/promises'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import * as v from 'valibot'
import { kernelHooks } from '../../../kernel/hooks/kernel-hooks.js'
import { Admission } from '../../../kernel/http/admission.js'
import { Entrance } from '../../../kernel/http/entrance.js'
import { boot } from '../../../kernel/http/pipelines.js'
import type { TransportOptions } from '../../../kernel/http/transport.js'
import { createKernel } from '../../../kernel/index.js'
import { describe } from '../../../kernel/kit/annotations/index.js'
import {
  type Actor,
  definePlugin,
  type Exchange,
  Fault,
  type KernelTaps,
  ok,
  type Plugin,
  type Route,
  routeOf,
} from '../../../kernel/plugin.js'
import { Redaction } from '../../../kernel/redaction.js'
import configuration from '../../../plugins/platform/configuration/index.js'
import tcpDoor from '../../../plugins/platform/tcp/index.js'
import { VirtualClock } from '../../../testing/virtual-clock.js'
import { temporaryFolder, whileTimePasses } from '../../harness/kernel.js'
import { ask, type Doors, openDoors, until } from './doors.js'

const route = routeOf<unknown>(describe('Test'))
const who = (path: string, more = {}) =>
  route({
    method: 'GET',
    path,
    summary: 'Who asks',
    replies: { 200: v.object({ id: v.string(), origin: v.optional(v.string()) }) },
    handle: (_self, { actor: { id, origin } }) => ok({ id, ...(origin ? { origin } : {}) }),
    ...more,
  }) as Route

const plugin = (name: string, hooks: KernelTaps<unknown>, routes: readonly Route[] = [], version = '1.0.0'): Plugin =>
  definePlugin({ name, version }).surface({ hooks: hooks as never, routes: routes as never })

const places = plugin('places', {}, [who('/api/who'), who('/api/anybody', { public: true })])

const named = (id: string, origin = 'http'): Actor => ({
  kind: 'operator',
  id,
  owner: { kind: 'operator', id },
  source: { kind: 'daemon', id: 'system' },
  origin,
})
const refusal = new Fault('key_unknown', 401, 'nobody has this key')

/** Knows who sends `x-key: <name>`; `bad` is refused, `broken` throws, `rubbish` is answered with what is no actor. */
const keys = (version = '1.0.0', seen: string[] = []) =>
  plugin(
    'keys',
    {
      authenticate: (_self, { headers, door }) => {
        seen.push(door)
        const key = headers['x-key']
        if (key === undefined) return undefined
        if (key === 'bad') return refusal
        if (key === 'broken') throw new Error('hunter2')
        if (key === 'rubbish') return { id: 'rubbish' } as never
        return named(`${key} ${version}`)
      },
    },
    [],
    version,
  )

async function during(plugins: readonly Plugin[], work: (doors: Doors) => Promise<void>, http = {}): Promise<void> {
  const doors = await openDoors(plugins, undefined, { trust_own_user: false, ...http })
  try {
    await work(doors)
  } finally {
    await doors.close()
  }
}

const answer = async (where: object, url: string, headers: Record<string, string> = {}) => {
  const { status, body } = await ask(where, url, { headers })
  return status === 200 ? `${body.id} ${body.origin}` : `${status} ${body.code}`
}

test('a request without a transport is refused', async () => {
  const clock = new VirtualClock()
  const options = {
    redact: new Redaction(),
    ids: { id: () => 'req_1' },
    db: { durable: async () => {} },
    hooks: kernelHooks(() => {}, clock),
  }
  const context = options as unknown as TransportOptions
  const entrance = new Entrance(context, new Admission(clock))
  const { routing } = await boot(undefined, { ...context, entrance })
  const server = http.createServer(routing).listen(0)
  await once(server, 'listening')
  const where = { host: '127.0.0.1', port: (server.address() as AddressInfo).port }
  const reply = await ask(where, '/api/who', { headers: { 'x-svc-acting': 'act_1' } })
  assert.equal([reply.status, reply.body.code], [401, 'identity_required'])
  server.close()
})

test('no caller is known over TCP without an authenticator, and the refusal names the header', () =>
  during([places], async ({ where, kernel }) => {
    assert.is(await answer(where.socket, '/api/who'), 'daemon-control uds')
    assert.is(await answer(where.socket, '/api/who', { 'user-agent': 'svc/cli' }), 'daemon-control cli')
    const refused = await ask(where.tcp, '/api/who')
    assert.equal([refused.status, refused.body.code], [401, 'identity_required'])
    assert.match(refused.body.details.next, 'Authorization: Bearer <token>')
    assert.match(refused.body.details.next, 'svc auth token')
    assert.is(await answer(where.tcp, '/api/who', { 'user-agent': 'svc/cli' }), '401 identity_required')
    assert.is(await answer(where.tcp, '/api/anybody'), 'anonymous http')
    const injected = await kernel.inject({ method: 'GET', url: '/api/who' })
    assert.equal(JSON.parse(injected.body), { id: 'daemon-control', origin: 'uds' })
  }))

for (const http of [{ trust_own_user: true }, { require_token: false }])
  test(`with ${JSON.stringify(http)} a local caller is the operator, unless it speaks for another`, () =>
    during(
      [places, keys()],
      async ({ where }) => {
        assert.is(await answer(where.tcp, '/api/who'), 'daemon-control http')
        assert.is(await answer(where.tcp, '/api/who', { 'sec-fetch-site': 'same-origin' }), 'daemon-control web')
        assert.is(await answer(where.tcp, '/api/who', { 'x-key': 'ada' }), 'ada 1.0.0 http')
        assert.is(await answer(where.tcp, '/api/who', { 'x-key': 'bad' }), '401 key_unknown')
        for (const header of ['x-forwarded-for', 'forwarded', 'via', 'x-real-ip'])
          assert.is(await answer(where.tcp, '/api/who', { [header]: '192.0.2.7' }), '401 identity_required', header)
        assert.is(await answer(where.tcp, '/api/who', { host: 'hooks.example' }), '401 identity_required')
      },
      { ...http, allowed_hosts: ['hooks.example'] },
    ))

test('an authenticator identifies TCP callers; unknown callers, and all during a failure, are refused', async () => {
  const seen: string[] = []
  await during([places, keys('1.0.0', seen)], async ({ where, kernel }) => {
    assert.is(await answer(where.tcp, '/api/who', { 'x-key': 'ada' }), 'ada 1.0.0 http')
    assert.is(await answer(where.tcp, '/api/who', { 'x-key': 'bad' }), '401 key_unknown')
    assert.is(await answer(where.tcp, '/api/who', { 'x-key': 'broken' }), '500 hook_failed')
    assert.is(await answer(where.tcp, '/api/who', { 'x-key': 'rubbish' }), '500 hook_failed')
    assert.is(await answer(where.tcp, '/api/who'), '401 identity_required')
    assert.is(await answer(where.tcp, '/api/nowhere'), '401 identity_required')
    assert.is(await answer(where.tcp, '/api/nowhere', { 'x-key': 'ada' }), '404 route_not_found')
    // A public route serves whom nobody knows, and still hears who somebody is.
    assert.is(await answer(where.tcp, '/api/anybody'), 'anonymous http')
    assert.is(await answer(where.tcp, '/api/anybody', { 'x-key': 'ada' }), 'ada 1.0.0 http')
    assert.is(await answer(where.tcp, '/api/anybody', { 'x-key': 'bad' }), '401 key_unknown')
    const requestCount = seen.length
    assert.is(await answer(where.socket, '/api/who', { 'x-key': 'bad' }), 'daemon-control uds')
    await kernel.inject({ method: 'GET', url: '/api/who' })
    assert.is(seen.length, requestCount, 'the socket and inject are the kernel’s own')
    assert.equal([...new Set(seen)], ['tcp'])
    assert.ok(kernel.host.faults().some(({ owner, where }) => owner === 'keys' && where === 'authenticate'))
  })
})

test('an authenticator that often fails is never skipped', () =>
  during([places, keys()], async ({ where }) => {
    for (let n = 0; n < 8; n++) assert.is(await answer(where.tcp, '/api/who', { 'x-key': 'broken' }), '500 hook_failed')
    assert.is(await answer(where.tcp, '/api/who'), '401 identity_required')
  }))

test('requests wait while an authenticator is replaced, and no caller counts as the own user', () =>
  during([places, keys('1')], async ({ where, kernel }) => {
    const answers: string[] = []
    let over = false
    const asking = Promise.all(
      Array.from({ length: 4 }, async () => {
        while (!over)
          answers.push(await answer(where.tcp, '/api/who'), await answer(where.tcp, '/api/who', { 'x-key': 'ada' }))
      }),
    )
    for (let version = 2; version < 6; version++) await kernel.host.reload(keys(String(version)))
    const before = answers.length
    await until(() => answers.length > before + 20)
    over = true
    await asking
    const kinds = [...new Set(answers)]
    assert.ok(kinds.includes('ada 5 http'))
    assert.equal(
      kinds.filter(one => !/^ada \d http$/.test(one)),
      ['401 identity_required'],
    )
    let start = (): void => {}
    const started = new Promise<void>(resolve => {
      start = resolve
    })
    let isGone = (): void => {}
    const gone = new Promise<void>(resolve => {
      isGone = resolve
    })
    const slow = {
      ...keys('6'),
      apply: () => {
        isGone()
        return started
      },
    }
    const reload = kernel.host.reload(slow)
    await gone
    const waiting = [answer(where.tcp, '/api/who'), answer(where.tcp, '/api/who', { 'x-key': 'ada' })]
    assert.is(await answer(where.socket, '/api/who'), 'daemon-control uds')
    start()
    await reload
    assert.equal(await Promise.all(waiting), ['401 identity_required', 'ada 6 http'])
    await kernel.host.unload('keys')
    assert.is(await answer(where.tcp, '/api/who'), '401 identity_required')
  }))

test('an authenticator released during a request lets no caller count as the own user', async () => {
  let decide = (): void => {}
  const decided = new Promise<void>(resolve => {
    decide = resolve
  })
  let requestCount = 0
  const slow = plugin('slow', {
    authenticate: async () => {
      requestCount++
      await decided
      return undefined
    },
  })
  await during([places, slow], async ({ where, kernel }) => {
    const waiting = answer(where.tcp, '/api/who')
    await until(() => requestCount === 1)
    const unloading = kernel.host.unload('slow')
    await until(() => kernel.host.plugins().every(({ name, holds }) => name !== 'slow' || holds.length === 0))
    decide()
    assert.is(await waiting, '401 identity_required')
    await unloading
  })
})

test('TCP waits for the configured authenticator, then replies 503; the socket is served meanwhile', async () => {
  const clock = new VirtualClock()
  const doors = await whileTimePasses(clock, openDoors([places], clock, { authenticator: 'keys' }))
  const { where, kernel } = doors
  assert.is(await answer(where.socket, '/api/who'), 'daemon-control uds')
  const late = await whileTimePasses(clock, ask(where.tcp, '/api/who'))
  assert.equal([late.status, late.body.code, late.headers['retry-after']], [503, 'reloading', '1'])
  assert.match(late.body.error, 'authenticates TCP callers')
  const waiting = answer(where.tcp, '/api/who', { 'x-key': 'ada' })
  await whileTimePasses(clock, kernel.host.load(keys()))
  assert.is(await whileTimePasses(clock, waiting), 'ada 1.0.0 http')
  await whileTimePasses(clock, kernel.host.unload('keys'))
  assert.is(await whileTimePasses(clock, answer(where.tcp, '/api/anybody')), '503 reloading')
  await whileTimePasses(clock, doors.close())
})

test('with an authenticator TCP may be reachable by others, and the peer user id does not count', async () => {
  for (const [plugins, authenticator] of [
    [[places, keys()], ''],
    [[places, keys()], 'keys'],
  ] as const) {
    const http = { host: '0.0.0.0', authenticator, allowed_hosts: ['box.example'], plaintext: true }
    await during(
      plugins,
      async ({ where }) => {
        const host = 'box.example'
        assert.is(await answer(where.tcp, '/api/who', { host, 'x-key': 'ada' }), 'ada 1.0.0 http')
        assert.is(await answer(where.tcp, '/api/who', { host }), '401 identity_required')
      },
      http,
    )
  }
  // It goes: nobody is left who could tell anybody apart.
  await during(
    [places, keys()],
    async ({ where, kernel }) => {
      await kernel.host.unload('keys')
      assert.is(await answer(where.tcp, '/api/who', { host: 'box.example' }), '401 identity_required')
    },
    { host: '0.0.0.0', allowed_hosts: ['box.example'], plaintext: true },
  )
})

test('`admit` refuses a route to a known caller before its body is read', async () => {
  const requests: string[] = []
  const gate = plugin('gate', {
    admit: async (_self, { actor, method }, { path }) => {
      requests.push(`${actor.id} ${method} ${path}`)
      if (path === '/api/anybody') throw new Error('hunter2')
      return actor.id.startsWith('eve') ? new Fault('not_you', 403, 'not you') : undefined
    },
  })
  await during([places, keys(), gate], async ({ where, kernel }) => {
    assert.is(await answer(where.tcp, '/api/who', { 'x-key': 'eve' }), '403 not_you')
    assert.is(await answer(where.tcp, '/api/who', { 'x-key': 'ada' }), 'ada 1.0.0 http')
    assert.is(await answer(where.socket, '/api/anybody'), '500 hook_failed')
    assert.is(await answer(where.tcp, '/api/nowhere', { 'x-key': 'ada' }), '404 route_not_found')
    assert.equal(requests, ['eve 1.0.0 GET /api/who', 'ada 1.0.0 GET /api/who', 'daemon-control GET /api/anybody'])
    await kernel.host.unload('gate')
    assert.is(await answer(where.socket, '/api/anybody'), 'daemon-control uds')
  })
})

test('a recovery route on the Unix socket asks built-in plugins about the operator, and no drop-in', async () => {
  const requests: string[] = []
  const own = plugin('own', {
    admit: (_self, incoming, { path }) => {
      requests.push(`own ${path}`)
      if (incoming.headers['x-for']) incoming.actFor({ kind: 'agent', id: 'eve' })
      return undefined
    },
  })
  const dropIn = plugin('acme.guard', {
    admit: (_self, { actor }, { path }) => {
      requests.push(`acme ${actor.onBehalfOf?.id ?? actor.id} ${path}`)
      throw new Error('no')
    },
  })
  const doors = plugin('doors', {}, [who('/api/out', { recovery: true })])
  await during([places, doors, keys(), own, dropIn], async ({ where }) => {
    assert.is(await answer(where.socket, '/api/out'), 'daemon-control uds')
    assert.equal(requests.splice(0), ['own /api/out'])
    const refused = await ask(where.socket, '/api/who')
    assert.equal([refused.status, refused.body.code], [500, 'hook_failed'])
    assert.match(refused.body.error, /acme\.guard failed to decide admit: no/)
    assert.is(refused.body.details.next, 'svc extension disable acme.guard')
    assert.equal(requests.splice(0), ['acme daemon-control /api/who'])
    // Over TCP, and for an agent, it decides as ever.
    assert.is(await answer(where.tcp, '/api/out', { 'x-key': 'ada' }), '500 hook_failed')
    requests.length = 0
    assert.is(await answer(where.socket, '/api/out', { 'x-for': 'eve' }), '500 hook_failed')
    assert.equal(requests, ['own /api/out', 'acme eve /api/out'])
  })
})

test('`replied` is called once for every request, refused ones too; its exceptions are contained', async () => {
  const notices: Exchange[] = []
  const audit = plugin('audit', {
    replied: (_self, exchange) => {
      notices.push(exchange)
      throw new Error('the disk of the audit is full')
    },
  })
  await during([places, keys(), audit], async ({ where, kernel }) => {
    assert.is(await answer(where.tcp, '/api/who?a=1', { 'x-key': 'ada' }), '400 invalid_query')
    await answer(where.tcp, '/api/who', { 'x-key': 'ada' })
    await answer(where.tcp, '/api/who')
    await answer(where.socket, '/api/nowhere')
    await kernel.inject({ method: 'GET', url: '/api/who' })
    await until(() => notices.length >= 5)
    assert.equal(
      notices.map(({ door, url, path, owner, actor, status }) => [door, url, path, owner, actor?.id, status]),
      [
        ['tcp', '/api/who?a=1', '/api/who', 'places', 'ada 1.0.0', 400],
        ['tcp', '/api/who', '/api/who', 'places', 'ada 1.0.0', 200],
        ['tcp', '/api/who', '/api/who', 'places', undefined, 401],
        ['socket', '/api/nowhere', undefined, undefined, 'daemon-control', 404],
        ['inject', '/api/who', '/api/who', 'places', 'daemon-control', 200],
      ],
    )
    for (const { id, milliseconds, actor } of notices) {
      assert.match(id, /^req_[0-9a-f]{16}$/)
      assert.ok(milliseconds >= 0)
      if (actor) assert.is(actor.cause, id)
    }
    assert.ok(kernel.host.faults().some(({ owner, where }) => owner === 'audit' && where === 'replied'))
  })
})

test('configured hosts are served live; they do not identify the own user', () =>
  during(
    [places, plugin('more', {}, [who('/api/page', { public: true, navigation: true })])],
    async ({ where, home, port }) => {
      const get = (url: string, headers: Record<string, string>) => answer(where.tcp, url, headers)
      assert.is(await get('/api/anybody', { host: 'hooks.example' }), '421 misdirected')
      const allow = (...allowed_hosts: string[]) =>
        writeFile(path.join(home, 'config.json'), JSON.stringify({ http: { port: 0, allowed_hosts } }))
      await allow('Hooks.example', 'other.example:8443')
      const first = () => get('/api/anybody', { host: 'hooks.example' })
      await until(async () => (await first()) === 'anonymous http')
      assert.is(await get('/api/anybody', { host: 'HOOKS.example:1234' }), 'anonymous http')
      assert.is(await get('/api/anybody', { host: 'other.example:8443' }), 'anonymous http')
      assert.is(await get('/api/anybody', { host: 'other.example' }), '421 misdirected')
      assert.is(await get('/api/anybody', { host: 'hooks.example.evil.example' }), '421 misdirected')
      // What forwards requests runs as the own user, as a rule.
      assert.is(await get('/api/who', { host: 'hooks.example' }), '401 identity_required')
      assert.is(await get('/api/who', { host: `localhost:${port}` }), '401 identity_required')
      const from = (origin: string, host = 'hooks.example') => get('/api/anybody', { host, origin })
      assert.is(await from('https://hooks.example'), 'anonymous http')
      assert.is(await from('https://other.example:8443'), '403 cross_site')
      assert.is(await from('https://hooks.example', `localhost:${port}`), '403 cross_site')
      assert.is(await from('https://evil.example'), '403 cross_site')
      await allow()
      await until(async () => (await first()) !== 'anonymous http')
      assert.is(await first(), '421 misdirected')
    },
  ))

test('a browser led from another site reaches only pages that allow it', () =>
  during(
    [
      places,
      plugin('pages', {}, [
        who('/api/page', { navigation: true }),
        who('/api/page', { navigation: true, method: 'POST' }),
      ]),
    ],
    async ({ where }) => {
      const navigation = { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' }
      assert.is(await answer(where.tcp, '/api/page', navigation), 'daemon-control http')
      assert.is(await answer(where.tcp, '/api/who', navigation), '403 cross_site')
      for (const wrong of [
        { 'sec-fetch-mode': 'cors' },
        { 'sec-fetch-mode': 'no-cors', 'sec-fetch-dest': 'image' },
        { 'sec-fetch-dest': 'iframe' },
        { origin: 'https://evil.example' },
      ])
        assert.is(await answer(where.tcp, '/api/page', { ...navigation, ...wrong } as never), '403 cross_site')
      const posted = await ask(where.tcp, '/api/page', { method: 'POST', headers: navigation })
      assert.is(posted.status, 403)
    },
    { trust_own_user: true },
  ))

test('an invalid host name stops the start', async () => {
  const home = await temporaryFolder('hosts')
  for (const bad of ['*', '*.example', 'a b', 'http://a.example', 'a.example:99999999', '']) {
    await writeFile(path.join(home, 'config.json'), JSON.stringify({ http: { allowed_hosts: [bad] } }))
    const code = await createKernel({ home, plugins: [configuration, tcpDoor] }).then(
      kernel => kernel.close().then(() => 'started'),
      error => error.code,
    )
    assert.is(code, 'config_invalid', bad)
  }
  await rm(home, { recursive: true, force: true })
})

test.run()
