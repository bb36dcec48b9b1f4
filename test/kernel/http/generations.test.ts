import http from 'node:http'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import * as v from 'valibot'
import { type BoundRoute, Collected } from '../../../kernel/contract/bound.js'
import type { Report } from '../../../kernel/contract/hook.js'
import { kernelHooks, kernelTapper } from '../../../kernel/hooks/kernel-hooks.js'
import { Transport } from '../../../kernel/http/transport.js'
import { systemIds } from '../../../kernel/index.js'
import { describe } from '../../../kernel/kit/annotations/index.js'
import {
  definePlugin,
  Fault,
  type InjectReply,
  ok,
  operator,
  type Plugin,
  type Route,
  type RouteRequest,
  routeOf,
  token,
} from '../../../kernel/plugin.js'
import { Redaction } from '../../../kernel/redaction.js'
import { OwnedScope } from '../../../kernel/scope.js'
import { VirtualClock } from '../../../testing/virtual-clock.js'
import { ask, openDoors, pause, until } from './doors.js'

type Asked = RouteRequest<string, undefined, undefined>

const route = routeOf<unknown>(describe('Test'))
const answer = (path: string, handle: (request: Asked) => unknown): Route =>
  route({
    method: 'GET',
    path,
    summary: path,
    replies: { 200: v.object({ version: v.string() }) },
    handle: async (_self, request) => ok((await handle(request as never)) as { version: string }),
  }) as Route

/** A plugin whose one route says which version of it answered; a released one says so, which no caller may ever see. */
function versioned(name: string, version: string, extra: readonly Route[] = []): Plugin {
  return definePlugin({
    name,
    version,
    provides: token<object>(`${name}@1`),
    service: async () =>
      class {
        released = false
        constructor(kernel: { scope: { defer(label: string, release: () => void): unknown } }) {
          kernel.scope.defer('service', () => {
            this.released = true
          })
        }
      },
  }).surface({
    routes: [
      routeOf<{ released: boolean }>()({
        method: 'GET',
        path: `/api/${name}`,
        with: [describe('Test')],
        summary: name,
        replies: { 200: v.object({ version: v.string() }) },
        handle: async self => {
          await pause(1)
          return ok({ version: self.released ? 'released' : version })
        },
      }),
      ...extra,
    ] as never,
  }) as Plugin
}

/** A transport without a kernel, on a clock that stands still. */
function bench(first: readonly BoundRoute[]) {
  const clock = new VirtualClock()
  const faults: string[] = []
  const state = { routes: first, written: Promise.resolve() }
  const report: Report = ({ owner, hook, error }) => faults.push(`${owner} ${hook}: ${error}`)
  const hooks = kernelHooks(report, clock)
  const scope = new OwnedScope('kernel', clock)
  hooks.collect.for(Collected.routes.registry).tap(kernelTapper(scope), () => state.routes)
  const transport = new Transport({
    clock,
    hooks,
    scope,
    redact: new Redaction(),
    report,
    ids: systemIds(),
    db: { durable: () => state.written },
    disk: { refusal: async () => undefined },
    checkReplies: true,
  })
  return { clock, transport, state, faults, get: (url: string) => transport.inject({ method: 'GET', url }) }
}

const bound = (owner: string, handle: (request: Asked) => unknown = () => ({ version: owner })): BoundRoute => ({
  owner,
  self: {},
  route: answer(`/api/${owner.split(' ')[0]}`, handle),
})
const versionOf = (reply: InjectReply) => (reply.status === 200 ? JSON.parse(reply.body).version : reply.status)

test('a reply waits for the disk, unless its caller inside of the daemon does', async () => {
  const refused = bound('refused', () => {
    throw new Fault('absent', 404, 'it is not there')
  })
  const { transport, state } = bench([bound('a'), refused])
  await transport.publish()
  let release = () => {}
  state.written = new Promise(resolve => {
    release = resolve
  })
  const asked = (url: string, waits?: false) =>
    transport.inject({ method: 'GET', url, ...(waits === false && { waits }) })
  assert.is(versionOf(await asked('/api/a', false)), 'a')
  assert.is(versionOf(await asked('/api/refused', false)), 404)
  const answered: string[] = []
  const waiting = ['/api/a', '/api/refused'].map(url => asked(url).then(() => answered.push(url)))
  // Each of them takes as many turns as these, which are asked later.
  for (let i = 0; i < 5; i++) await Promise.all(['/api/a', '/api/refused'].map(url => asked(url, false)))
  assert.equal(answered, [])
  release()
  await Promise.all(waiting)
  await transport.end()
})

test('only routes of changed branches boot anew, each at its first request', async () => {
  const { transport, state, get } = bench([bound('a'), bound('b')])
  const booted: string[] = []
  const watched = (owner: string, version = owner): BoundRoute => {
    const { route, ...rest } = bound(owner, () => ({ version }))
    // Read once when the route is registered.
    const headers = { get: () => booted.push(version) && {}, enumerable: true }
    return { ...rest, route: Object.defineProperty({ ...route }, 'headers', headers) }
  }
  const [a, b] = [watched('a'), watched('b')]
  state.routes = [a, b]
  await transport.publish()
  assert.equal(booted, [])
  assert.equal([versionOf(await get('/api/a')), versionOf(await get('/api/a'))], ['a', 'a'])
  assert.equal(booted, ['a'])
  state.routes = [a, watched('b', 'b2'), watched('c')]
  await transport.publish()
  assert.equal(booted, ['a'])
  const both = await Promise.all([get('/api/b'), get('/api/b'), get('/api/a')])
  assert.equal(both.map(versionOf), ['b2', 'b2', 'a'])
  assert.equal(booted, ['a', 'b2'])
  await transport.end()
})

test('routes that cannot be served leave the current ones, and the next good ones replace them', async () => {
  const { transport, state, get } = bench([bound('a')])
  await transport.publish()
  state.routes = [bound('a'), bound('a')]
  const broken = await transport.publish().then(
    () => 'published',
    error => String(error),
  )
  assert.match(broken, /already declared/)
  assert.is(versionOf(await get('/api/a')), 'a')
  state.routes = [bound('a'), bound('c')]
  await transport.publish()
  assert.is(versionOf(await get('/api/c')), 'c')
  await transport.end()
})

test('requests for held routes wait for the new version, others continue, and removed routes give 404', async () => {
  const { transport, state, get } = bench([bound('a'), bound('b'), bound('c')])
  await transport.publish()
  transport.hold(['a', 'c'])
  const [a, c] = [get('/api/a'), get('/api/c')]
  assert.is(versionOf(await get('/api/b')), 'b')
  // Held once more, and routes that cannot be served: both let nobody in.
  transport.hold(['a'])
  state.routes = [bound('a'), bound('a')]
  assert.match(await transport.publish().then(String, String), 'already declared')
  const later = get('/api/a')
  state.routes = [bound('a', () => ({ version: 'a2' })), bound('b')]
  await transport.publish()
  assert.equal([versionOf(await a), versionOf(await later), versionOf(await c)], ['a2', 'a2', 404])
  await transport.end()
})

test('a request that waits over five seconds gets 503 with Retry-After', async () => {
  const { clock, transport, get } = bench([bound('a')])
  await transport.publish()
  transport.hold(['a'])
  const waiting = get('/api/a')
  await clock.advance(3000)
  // A second change after the first does not make anybody wait longer.
  transport.hold(['a'])
  await clock.advance(1999)
  let settled = false
  void waiting.then(() => {
    settled = true
  })
  await pause(5)
  assert.not.ok(settled)
  await clock.advance(1)
  const reply = await waiting
  assert.is(reply.status, 503)
  assert.is(JSON.parse(reply.body).code, 'reloading')
  assert.is(reply.headers['retry-after'], '1')
  await transport.publish()
  assert.is(versionOf(await get('/api/a')), 'a')
  assert.is(clock.pending, 0)
  await transport.end()
})

test('a drain waits only for handlers of its plugin; then their signals abort and callers get 503', async () => {
  const ends = new Map<string, (value: unknown) => void>()
  const reasons: unknown[] = []
  const slow = (name: string) =>
    bound(name, ({ signal }) => {
      signal.addEventListener('abort', () => reasons.push(signal.reason.code))
      return new Promise(resolve => ends.set(name, resolve))
    })
  const { clock, transport, faults, get } = bench([slow('a'), slow('b'), slow('deaf')])
  await transport.publish()
  const [a, b, deaf] = [get('/api/a'), get('/api/b'), get('/api/deaf')]
  await until(() => ends.size === 3)
  let drained = false
  const done = transport.drain('a', 5000).then(() => {
    drained = true
  })
  await clock.advance(4999)
  assert.not.ok(drained)
  ends.get('a')?.({ version: 'whole' })
  await done
  assert.is(versionOf(await a), 'whole')
  assert.equal(reasons, [])
  const late = transport.drain('deaf', 5000)
  await clock.advance(5000)
  await late
  assert.equal(reasons, ['reloading'])
  assert.is(JSON.parse((await deaf).body).code, 'reloading')
  ends.get('b')?.({ version: 'b' })
  assert.is(versionOf(await b), 'b')
  assert.equal(faults, [])
  await transport.drain('b', 5000)
  assert.is(clock.pending, 0)
  await transport.end()
})

test('hundreds of replacements of one plugin under load fail no request of others, and its own are served', async () => {
  const doors = await openDoors([versioned('steady', '1'), versioned('other', '1'), versioned('moving', '0')])
  const { host } = doors.kernel
  // As many as callers: the server closes one that is idle for some seconds, which may be the moment in which it is used again.
  const agent = new http.Agent({ keepAlive: true, maxSockets: 6 })
  const seen = { steady: 0, other: 0, moving: 0 }
  const wrong: string[] = []
  let on = true
  let current = 0
  const load = async (name: keyof typeof seen) => {
    while (on) {
      const generation = current
      const { status, text, body } = await ask(doors.where.socket, `/api/${name}`, { agent })
      if (status !== 200) wrong.push(`${name} ${status} ${text}`)
      else if (name !== 'moving' && body.version !== '1') wrong.push(`${name} ${text}`)
      else if (name === 'moving' && !(Number(body.version) >= generation - 1)) wrong.push(`${text} after ${generation}`)
      else seen[name]++
    }
  }
  const loads = (['steady', 'other', 'moving', 'steady', 'other', 'moving'] as const).map(load)
  const enough = () => seen.steady > 10 && seen.other > 10 && seen.moving > 3
  // How many requests come between two replacements depends on the machine.
  for (let round = 0; round < 25 || (round < 200 && !enough()); round++) {
    const versions = Array.from({ length: 10 }, (_, i) => versioned('moving', String(current + i + 1)))
    await Promise.all(versions.map(version => host.reload(version)))
    current += 10
  }
  on = false
  await Promise.all(loads)
  agent.destroy()
  assert.equal(wrong, [])
  assert.ok(enough(), JSON.stringify(seen))
  assert.equal((await ask(doors.where.tcp, '/api/moving')).body, { version: String(current) })
  await host.unload('moving')
  assert.is((await ask(doors.where.tcp, '/api/moving')).status, 404)
  assert.equal(doors.kernel.host.faults(), [])
  await doors.close()
})

test('a request that is authenticated while its plugin is replaced reaches the new version', async () => {
  let asked = 0
  let letIn = () => {}
  const door = definePlugin({ name: 'door', version: '1', service: async () => class {} }).surface({
    hooks: {
      authenticate: async () => {
        asked++
        await new Promise<void>(resolve => {
          letIn = resolve
        })
        return operator
      },
    },
  }) as Plugin
  const doors = await openDoors([door, versioned('moving', '1')])
  const answered = ask(doors.where.tcp, '/api/moving')
  await until(() => asked === 1)
  await doors.kernel.host.reload(versioned('moving', '2'))
  letIn()
  await until(() => asked === 2)
  letIn()
  assert.equal((await answered).body, { version: '2' })
  await doors.close()
})

test('a request with an incomplete body when its plugin leaves gets 503 and does not reach the released plugin', async () => {
  const clock = new VirtualClock()
  let handled = 0
  const taker = definePlugin({ name: 'taker', version: '1', service: async () => class {} }).surface({
    routes: [
      route({
        method: 'POST',
        path: '/api/taker',
        summary: 'Takes',
        body: v.unknown(),
        replies: { 200: v.object({}) },
        handle: () => {
          handled++
          return ok({})
        },
      }),
    ],
  }) as Plugin
  const doors = await openDoors([taker], clock)
  const request = http.request({ ...doors.where.socket, method: 'POST', path: '/api/taker', agent: false })
  const answered = new Promise<http.IncomingMessage>(resolve => request.on('response', resolve))
  request.setHeader('content-type', 'application/json')
  request.setHeader('content-length', '2')
  request.write('{')
  await ask(doors.where.socket, '/api/nothing')
  let gone = false
  const unloaded = doors.kernel.host.unload('taker').then(() => {
    gone = true
  })
  while (!gone) {
    await clock.advance(500)
    await pause(1)
  }
  await unloaded
  request.end('}')
  assert.is((await answered).statusCode, 503)
  assert.is(handled, 0)
  assert.equal(doors.kernel.host.faults(), [])
  await doors.close()
})

test.run()
