import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { DropIns } from '../../../kernel/platform.js'
import {
  type DiskRoom,
  DiskSpace,
  Fault,
  Faults,
  Host,
  type HostView,
  type PluginKernel,
  Requests,
} from '../../../kernel/plugin.js'
import { bootBare as boot } from '../../harness/kernel.js'
import { plain } from './scene.js'

const all = [Host, DropIns, Requests, DiskSpace, Faults]

test('a kernel token is available to each plugin that requires it, from the first plugin on', async () => {
  const seen: Record<string, PluginKernel> = {}
  const keep = (kernel: PluginKernel) => {
    seen[kernel.name] = kernel
  }
  const svc = await boot({
    plugins: [
      plain('asks', { requires: all.map(({ id }) => id), apply: keep }),
      plain('may', { maybe: [Host.id], apply: keep }),
      plain('none', { apply: keep }),
    ],
  })
  const needs = seen.asks?.needs as unknown as Record<string, unknown>
  assert.equal(
    Object.keys(needs),
    all.map(({ id }) => id),
  )
  assert.is((needs[Host.id] as HostView).plugins().length, 3)
  assert.is((needs[DiskSpace.id] as DiskRoom).writable, true)
  ;(needs[Faults.id] as (owner: string, where: string, error: unknown) => void)(
    'acme.guest',
    'there',
    new Error('boom'),
  )
  assert.equal(
    svc.kernel.host.faults().map(({ owner, where, error }) => [owner, where, error]),
    [['acme.guest', 'there', 'boom']],
  )
  assert.is(
    (seen.may as PluginKernel<{ [id: string]: { maybe: typeof Host } }>).needs[Host.id]?.current,
    needs[Host.id],
  )
  assert.equal(seen.none?.needs, {})
  for (const member of ['host', 'dropIns', 'request', 'file', 'disk', 'report'])
    assert.not.ok(member in (seen.none as object), member)
  await svc.close()
})

test('no plugin replaces a kernel token, and a missing kernel token is awaited', async () => {
  const svc = await boot({
    plugins: [plain('taker', { provides: Host.id }), plain('waits', { requires: ['kernel.nothing@1'] })],
  })
  assert.equal(
    svc.kernel.host.plugins().map(({ name, state }) => [name, state]),
    [
      ['taker', { status: 'failed', error: 'kernel.host@1 is provided by the kernel already' }],
      ['waits', { status: 'waiting', missing: ['waits', 'kernel.nothing@1'] }],
    ],
  )
  await svc.close()
})

test('a route of a plugin that waits says why it is not served, and one of nobody is not found', async () => {
  const full = () => {
    throw new Fault('disk_full', 507, 'no space')
  }
  const svc = await boot({
    plugins: [
      plain('base', { provides: 'base@1', apply: full }),
      plain('above', { requires: ['base@1'], path: '/api/above/{id}' }),
    ],
  })
  const reply = async (path: string) => {
    const { status, body } = await svc.request('GET', path)
    return [status, body.code, body.error, body.details?.next]
  }
  const why = 'it waits for free disk space (disk_full): no space'
  assert.equal(await reply('/api/base'), [503, 'unavailable', `base does not run now: ${why}`, 'svc doctor'])
  const above = 'above does not run now: it waits for above → base@1 of base, which waits for free disk space'
  assert.equal((await reply('/api/above/7?x=1')).slice(0, 3), [503, 'unavailable', above])
  for (const path of ['/api/above', '/api/above/7/8', '/api/none'])
    assert.equal((await reply(path)).slice(0, 2), [404, 'route_not_found'], path)
  await svc.close()
})

test.run()
