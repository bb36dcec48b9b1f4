import { readdir } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { definePlugin, surfaceOf } from '../../../../kernel/plugin.js'
import { Extensions } from '../../../../plugins/delivery/extensions/api.js'
import { daemon, extensions, resources } from '../../../../plugins/index.js'
import { hasFailed, isActive, isGone, type Scene, scene, textExtension } from './scene.js'

/** A loop of requests that never waits would starve the timers. */
const pause = () => new Promise(resolve => setTimeout(resolve, 2))
const held = (svc: Scene) => svc.kernel.host.plugins().flatMap(({ holds }) => holds)
const say = '/api/ext/acme.hello/say'

test('an extension is dropped in, edited, broken, repaired and removed in a running kernel during requests', async () => {
  const svc = await scene()
  let failures = 0
  let requestCount = 0
  let over = false
  const traffic = (async () => {
    while (!over) {
      requestCount++
      const { status } = await svc.request('GET', '/api/status/identity')
      if (status !== 200) failures++
      await pause()
    }
  })()
  const plugins = () => svc.kernel.host.plugins()
  await svc.until('nothing', () => held(svc).includes('watch extensions'))
  // The first sweep of the event log opens its journal.
  await svc.until('nothing', () => plugins().some(({ holds }) => holds.includes('journal events')))
  const before = plugins()

  await svc.drop('acme.hello', textExtension('acme.hello', 'hello'))
  await svc.until('acme.hello', isActive)
  assert.equal((await svc.request('GET', say)).body, { text: 'hello' })

  const own = (async () => {
    const seen = new Set<number>()
    for (; !over; await pause()) seen.add((await svc.request('GET', say)).status)
    return seen
  })()
  await svc.drop('acme.hello', { 'text.js': 'export const text = "hello again"\n' })
  await svc.until('acme.hello', async () => (await svc.request('GET', say)).body.text === 'hello again')

  // What does not load leaves what runs.
  await svc.drop('acme.hello', { 'text.js': 'export const = \n' })
  const broken = await svc.until('acme.hello', hasFailed)
  assert.is(broken.state, 'active')
  assert.is(broken.health, 'unhealthy')
  assert.equal((await svc.request('GET', say)).body, { text: 'hello again' })
  await svc.drop('acme.hello', { 'extension.toml': 'name = "acme.hello"\nversion = ' })
  await svc.until('acme.hello', extension => /extension\.toml:2/.test(extension?.last_error))
  await svc.drop('acme.hello', textExtension('acme.hello', 'mended'))
  await svc.until('acme.hello', extension => extension?.last_error === undefined)
  assert.equal((await svc.request('GET', say)).body, { text: 'mended' })

  over = true
  await traffic
  assert.equal([...(await own)], [200])
  assert.is(failures, 0)
  assert.ok(requestCount > 10)

  // Of all that was tried the copy that runs is kept.
  const copies = async () => (await readdir(path.join(svc.home, 'cache/extensions'))).filter(name => name.length === 64)
  await svc.until('acme.hello', async () => (await copies()).length === 1)

  await svc.remove('acme.hello')
  await svc.until('acme.hello', isGone)
  assert.is((await svc.request('GET', say)).status, 404)
  await svc.until('acme.hello', async () => (await copies()).length === 0)
  assert.equal(plugins(), before)
  await svc.close()
})

test('a request replies when all plugins have applied a change, also if the watcher saw it first', async () => {
  const callbacks: (() => void)[] = []
  let isSlow = false
  class Slow {
    hears = () => (isSlow ? new Promise<void>(resolve => callbacks.push(resolve)) : undefined)
  }
  const slow = definePlugin({
    name: 'slow',
    version: '1',
    requires: { extensions: Extensions },
    service: async () => Slow,
  }).surface({
    taps: [
      surfaceOf<Slow>().tap(
        Extensions,
        one => one.changed,
        self => self.hears,
      ),
    ],
  })
  const plugins = [daemon, resources, extensions, slow]
  const svc = await scene({ 'acme.hello': textExtension('acme.hello', 'hello') }, { plugins })
  await svc.until('acme.hello', isActive)
  await svc.until('nothing', () => held(svc).includes('watch extensions'))
  isSlow = true
  await svc.drop('acme.hello', { 'text.js': 'export const text = "again"\n' })
  await svc.until('acme.hello', () => callbacks.length > 0)
  let answered = false
  const enable = svc.request('POST', '/api/extensions/acme.hello/enable').finally(() => {
    answered = true
  })
  for (let tries = 0; tries < 50 && !answered; tries++) await new Promise(resolve => setTimeout(resolve, 10))
  assert.is(answered, false)
  isSlow = false
  for (const end of callbacks) end()
  assert.is((await enable).status, 200)
  await svc.close()
})

test('a request during a switch off or on says why there is no route', async () => {
  const svc = await scene({ 'acme.blink': textExtension('acme.blink', 'here') })
  await svc.until('acme.blink', isActive)
  const unexplained: string[] = []
  let isOver = false
  const read = async () => {
    for (; !isOver; await pause()) {
      const { status, body } = await svc.request('GET', '/api/ext/acme.blink/say')
      if (status !== 200 && !/is disabled|is being loaded|being reloaded/.test(body.error)) unexplained.push(body.error)
    }
  }
  const readers = Array.from({ length: 8 }, read)
  for (let n = 0; n < 30; n++)
    for (const way of ['disable', 'enable']) await svc.request('POST', `/api/extensions/acme.blink/${way}`)
  isOver = true
  await Promise.all(readers)
  assert.equal([...new Set(unexplained)], [])
  await svc.close()
})

test.run()
