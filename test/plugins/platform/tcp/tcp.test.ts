import { rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import * as v from 'valibot'
import { createKernel, type Kernel } from '../../../../kernel/index.js'
import { describe } from '../../../../kernel/kit/annotations/index.js'
import { Listeners, operatorAt } from '../../../../kernel/platform.js'
import {
  type Actor,
  definePlugin,
  Fault,
  ok,
  operator,
  type Plugin,
  type PluginKernel,
  routeOf,
  surfaceOf,
} from '../../../../kernel/plugin.js'
import { type Passage, Tcp } from '../../../../plugins/platform/tcp/api.js'
import tcp from '../../../../plugins/platform/tcp/index.js'
import { temporaryFolder, withBase } from '../../../harness/kernel.js'
import { ask } from '../../../kernel/http/doors.js'

const { tap } = surfaceOf<object>()

const places = definePlugin({ name: 'places', version: '1.0.0', service: async () => class {} }).surface({
  routes: [
    routeOf<object>()({
      method: 'GET',
      path: '/api/who',
      with: [describe('Test')],
      summary: 'Says who asks',
      replies: { 200: v.object({ id: v.string() }) },
      handle: (_, { actor }) => ok({ id: actor.id }),
    }),
  ],
}) as Plugin

const portOf = (kernel: Kernel) => {
  const at = kernel.host.listeners().find(({ door }) => door === 'tcp')
  return at?.door === 'tcp' ? at.port : 0
}
const statusAt = async (port: number) => (await ask({ host: '127.0.0.1', port }, '/api/who')).status

/** With these plugins, on a home whose configuration is this. */
async function during(
  plugins: readonly Plugin[],
  http: object,
  work: (kernel: Kernel, log: string[]) => Promise<void>,
) {
  const home = await temporaryFolder('tcp')
  await writeFile(path.join(home, 'config.json'), JSON.stringify({ http }))
  const log: string[] = []
  const kernel = await createKernel({ home, plugins, listen: ['tcp'], log: ({ msg }) => log.push(msg) })
  await work(kernel, log).finally(async () => {
    await kernel.close()
    await rm(home, { recursive: true })
  })
}

test('a new version of the plugin closes and reopens the port', () =>
  during(withBase([places]), { port: 0, require_token: false }, async kernel => {
    const before = portOf(kernel)
    assert.is(await statusAt(before), 200)
    assert.equal(await kernel.host.reload({ ...tcp, version: '0.1.1' } as Plugin), { status: 'active' })
    assert.is(kernel.host.listeners().filter(({ door }) => door === 'tcp').length, 1)
    assert.is(await statusAt(portOf(kernel)), 200)
    await kernel.host.unload('tcp')
    assert.equal(kernel.host.listeners(), [])
    assert.is(await statusAt(before).catch(() => 'closed'), 'closed')
  }))

test('no port is open without the plugin, and the log says so', () =>
  during(
    withBase([places]).filter(({ name }) => name !== 'tcp'),
    {},
    async (kernel, log) => {
      assert.equal(kernel.host.listeners(), [])
      assert.ok(log.includes('TCP is not served: no plugin opens a TCP listener'))
    },
  ))

test('another plugin replaces TCP', () => {
  const own = definePlugin({
    name: 'acme.tcp',
    version: '1.0.0',
    requires: { listeners: Listeners },
    service: async () =>
      class {
        constructor(private readonly kernel: PluginKernel<{ listeners: typeof Listeners }>) {}
        async open() {
          const { needs, scope } = this.kernel
          const bound = await needs.listeners.listen(
            { host: 'localhost', port: 0 },
            {
              authenticator: '',
              identify: ({ id, headers }, _, done) => done(headers.host ? operatorAt('http', id) : undefined),
              refusal: () => undefined,
              isLocal: () => true,
            },
          )
          scope.defer('port', bound.close)
          return undefined
        }
      },
  }).surface({ hooks: { open: self => self.open() } }) as Plugin
  const others = withBase([places, own]).filter(({ name }) => name !== 'tcp')
  return during(others, {}, async kernel => assert.is(await statusAt(portOf(kernel)), 200))
})

/** Answers the hooks of the plugin tcp, and authenticates nobody. */
const answering = (hooks: { bind?: Fault | Passage; vouch?: Fault | Actor }) =>
  definePlugin({ name: 'answers', version: '1.0.0', requires: { tcp: Tcp }, service: async () => class {} }).surface({
    hooks: { authenticate: () => undefined },
    taps: [
      tap(
        Tcp,
        tcp => tcp.bind,
        () => () => hooks.bind,
      ),
      tap(
        Tcp,
        tcp => tcp.vouch,
        () => () => hooks.vouch,
      ),
    ],
  }) as Plugin
const refusal = new Fault('not_here', 403, 'not here')

test('the answer of a plugin to the hook bind overrides the settings', async () => {
  const http = { port: 0, host: '0.0.0.0' }
  const starts = (bind?: Fault | Passage) =>
    during(withBase([places, answering({ ...(bind ? { bind } : {}) })]), http, async () => {}).then(
      () => 'started',
      ({ code }) => code,
    )
  assert.is(await starts(), 'forbidden')
  assert.is(await starts({}), 'started')
  assert.is(await starts(refusal), 'not_here')
})

test('the answer of a plugin to the hook vouch overrides http.trust_own_user', async () => {
  const http = { port: 0, trust_own_user: true }
  const callerOf = async (vouch?: Fault | Actor) => {
    let answer = ''
    await during(withBase([places, answering({ ...(vouch ? { vouch } : {}) })]), http, async kernel => {
      const { status, body } = await ask({ host: '127.0.0.1', port: portOf(kernel) }, '/api/who')
      answer = status === 200 ? body.id : body.code
    })
    return answer
  }
  assert.is(await callerOf(), operator.id)
  assert.is(await callerOf({ ...operator, id: 'guest' }), 'guest')
  assert.is(await callerOf(refusal), 'not_here')
})

test.run()
