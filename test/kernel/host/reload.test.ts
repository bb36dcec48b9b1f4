import { test } from 'uvu'
import * as assert from 'uvu/assert'
import type { PluginKernel } from '../../../kernel/plugin.js'
import { bootBare as boot } from '../../harness/kernel.js'
import { boom, plain, refusal, Said } from './scene.js'

const base = plain('base', { provides: 'base@1' })
const user = plain('user', { requires: ['base@1'], provides: 'user@1' })
const top = plain('top', { requires: ['user@1'], maybe: ['side@1'] })
const aside = plain('aside')

type Svc = Awaited<ReturnType<typeof boot>>
const version = async (svc: Svc, path: string) => {
  const { status, body } = await svc.request('GET', path)
  return status === 200 ? `${body.name} ${body.version}` : status
}
const states = (svc: Svc) =>
  Object.fromEntries(svc.kernel.host.plugins().map(({ name, state }) => [name, state.status]))

test('reload replaces a plugin and its dependents, and leaves the others alone', async () => {
  const svc = await boot({ plugins: [base, user, top, aside] })
  const before = svc.kernel.host.plugins()
  assert.equal(await svc.kernel.host.reload(plain('base', { provides: 'base@1', version: '2' })), { status: 'active' })
  assert.is(await version(svc, '/api/base'), 'base 2')
  assert.is(await version(svc, '/api/top'), 'top 1')
  await svc.kernel.host.reload(base)
  assert.equal(svc.kernel.host.plugins(), before)
  await svc.close()
})

test('a version that does not start is refused with the reason, and the previous one runs again with its dependents', async () => {
  const svc = await boot({ plugins: [base, user, top] })
  const before = svc.kernel.host.plugins()
  const bad: [Parameters<typeof plain>[1], RegExp][] = [
    [{ version: '2', provides: 'base@1', apply: boom }, /reload_failed: base 2 did not start, 1 runs again: boom/],
    [{ version: '3', provides: 'base@1', requires: ['none@1'] }, /waits for base → none@1/],
    [{ version: '4', provides: 'base@1', path: '/api/a**b' }, /did not start, 1 runs again/],
  ]
  for (const [parts, says] of bad) {
    assert.match(await refusal(svc.kernel.host.reload(plain('base', parts))), says)
    assert.equal(svc.kernel.host.plugins(), before)
    assert.is(await version(svc, '/api/base'), 'base 1')
    assert.is(await version(svc, '/api/top'), 'top 1')
    assert.is(svc.kernel.host.faults().at(-1)?.where, 'reload')
  }
  await svc.close()
})

test('a route that is taken or cannot be served fails only its plugin', async () => {
  const svc = await boot({ plugins: [base, plain('bad', { path: '/api/a**b' }), plain('zoo')] })
  assert.equal(states(svc), { base: 'active', bad: 'failed', zoo: 'active' })
  // By plan order the newcomer would be the first and the one that runs the later.
  await svc.kernel.host.load(plain('ape', { path: '/api/zoo' }))
  assert.equal(states(svc), { ape: 'failed', base: 'active', bad: 'failed', zoo: 'active' })
  assert.is(await version(svc, '/api/zoo'), 'zoo 1')
  await svc.close()
})

test('load, unload and load again give the same order, whatever was loaded in between', async () => {
  let kernel: PluginKernel | undefined
  const probe = plain('probe', { apply: given => (kernel = given) })
  const svc = await boot({ plugins: [base, user, top, probe] })
  const collected = () => kernel?.collect(Said).map(({ entry }) => entry)
  const before = collected()
  assert.equal(before, ['base 1', 'probe 1', 'user 1', 'top 1'])
  await svc.kernel.host.unload('base')
  assert.equal(states(svc), { probe: 'active', top: 'waiting', user: 'waiting' })
  await svc.kernel.host.load(aside)
  await svc.kernel.host.load(base)
  await svc.kernel.host.unload('aside')
  assert.equal(collected(), before)
  await svc.close()
})

test('a plugin loaded before its providers waits and starts with them; failed dependents are retried', async () => {
  const svc = await boot({ plugins: [top] })
  await svc.kernel.host.load(user)
  const missing = (name: string) => {
    const state = svc.kernel.host.plugins().find(plugin => plugin.name === name)?.state
    return state?.status === 'waiting' ? state.missing : state?.status
  }
  assert.equal(missing('top'), ['top', 'user', 'base@1'])
  await svc.kernel.host.load(plain('base', { provides: 'base@1', apply: boom }))
  assert.equal(missing('user'), ['user', 'base@1 of base, which failed'])
  await svc.kernel.host.reload(base)
  assert.equal(states(svc), { base: 'active', top: 'active', user: 'active' })
  let refuses = true
  const picky = plain('picky', { requires: ['base@1'], apply: () => refuses && boom() })
  assert.equal(await svc.kernel.host.load(picky), { status: 'failed', error: 'boom' })
  refuses = false
  await svc.kernel.host.reload(base)
  assert.is(states(svc).picky, 'active')
  await svc.close()
})

test('the first of two plugins with one token or name runs; the second is reported', async () => {
  const second = plain('second', { provides: 'base@1' })
  const svc = await boot({ plugins: [base, plain('base', { version: '9', path: '/api/else' }), second, user] })
  assert.equal(states(svc), { base: 'active', second: 'failed', user: 'active' })
  assert.is(await version(svc, '/api/base'), 'base 1')
  assert.match(svc.kernel.host.faults()[0]?.error ?? '', 'another plugin already has the name base')
  await svc.kernel.host.unload('second')
  assert.equal(states(svc), { base: 'active', user: 'active' })
  await svc.kernel.host.load(second)
  await svc.kernel.host.unload('base')
  assert.equal(states(svc), { second: 'active', user: 'active' })
  await svc.close()
})

test('concurrent changes are made one after another', async () => {
  const svc = await boot({ plugins: [base, user] })
  const { host } = svc.kernel
  const results = await Promise.all([
    host.reload(base).then(({ status }) => status),
    host.unload('base'),
    refusal(host.unload('base')),
    host.load(base).then(({ status }) => status),
    refusal(host.load(base)),
  ])
  const refused = ['undefined: no plugin is named base', 'undefined: base is loaded already']
  assert.equal(results, ['active', undefined, refused[0], 'active', refused[1]])
  assert.equal(states(svc), { base: 'active', user: 'active' })
  await svc.close()
})

test.run()
