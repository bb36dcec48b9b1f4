import { test } from 'uvu'
import * as assert from 'uvu/assert'
import * as v from 'valibot'
import { describe } from '../../../kernel/kit/annotations/index.js'
import {
  definePlugin,
  Fault,
  type KernelTaps,
  kind,
  operator,
  type Plugin,
  type PluginKernel,
} from '../../../kernel/plugin.js'
import { base, daemon, resources } from '../../../plugins/index.js'
import { boot } from '../../harness/kernel.js'

const Leaf = kind({ name: 'leaf', spec: v.object({ text: v.string() }), maxBytes: 1000 })
const leaf = (id: string) => ({ kind: Leaf, id, scope: { kind: 'global' }, spec: { text: id } }) as const

/** A plugin without a service: its functions are called with its kernel. */
function tapping(name: string, hooks: KernelTaps<PluginKernel>, version = '1'): Plugin {
  return definePlugin({ name, version }).surface({
    kinds: name === 'acme.first' ? [Leaf] : [],
    registries: [],
    hooks: hooks as KernelTaps<unknown>,
  })
}

const stages = (seen: string[]): KernelTaps<PluginKernel> => ({
  known: (self, { boot, started }) =>
    void seen.push(`known ${self.name} ${boot} ${[...started].includes('acme.late')}`),
  published: self => void seen.push(`published ${self.name}`),
  projected: self => void seen.push(`projected ${self.name}`),
  running: self => void seen.push(`running ${self.name}`),
  leaving: (_, { owners, why }) => void seen.push(`leaving ${owners.filter(owner => owner.includes('.'))} ${why}`),
})

test('every stage of a boot, load, unload and shutdown calls its hook with the kernel', async () => {
  const seen: string[] = []
  const svc = await boot({ plugins: [daemon, resources, tapping('acme.first', stages(seen))] })
  assert.equal(seen.splice(0), [
    'known acme.first true false',
    'published acme.first',
    'projected acme.first',
    'running acme.first',
  ])
  await svc.kernel.host.load(tapping('acme.late', {}))
  assert.equal(seen.splice(0), [
    'known acme.first false true',
    'projected acme.first',
    'running acme.first',
    'published acme.first',
  ])
  await svc.kernel.host.unload('acme.late')
  assert.is(seen[0], 'leaving acme.late change')
  seen.length = 0
  await svc.close()
  assert.equal(seen, ['leaving acme.first shutdown'])
})

test('an exception of a tap on a stage is attributed, and the change continues', async () => {
  const broken: KernelTaps<PluginKernel> = {
    known: () => {
      throw new Error('not known')
    },
    running: async () => {
      throw new Error('not running')
    },
  }
  const svc = await boot({ plugins: [daemon, resources, tapping('acme.first', broken)] })
  assert.is((await svc.request('GET', '/api/status')).status, 200)
  const faults = svc.kernel.host.faults().map(({ owner, where, error }) => `${owner} ${where}: ${error}`)
  assert.equal(faults, ['acme.first known: not known', 'acme.first running: not running'])
  await svc.close()
})

test('a tap can exclude a plugin from a change: it fails with the text, and the others run', async () => {
  const refusing: KernelTaps<PluginKernel> = {
    known: (_, change) => change.started.has('acme.second') && change.fail('acme.second', 'not this one'),
  }
  const svc = await boot({ plugins: [daemon, resources, tapping('acme.first', refusing), tapping('acme.second', {})] })
  const states = svc.kernel.host
    .plugins()
    .filter(({ name }) => !base.some(one => one.name === name))
    .map(({ name, state }) => [name, state.status])
  assert.equal(Object.fromEntries(states), {
    daemon: 'active',
    resources: 'active',
    'acme.first': 'active',
    'acme.second': 'failed',
  })
  await svc.close()
})

test('a plugin that taps an unknown kernel hook fails with its name', async () => {
  for (const name of ['knwon', 'collect', 'quiesce', 'constructor']) {
    const wrong = tapping('acme.wrong', { [name]: () => undefined } as KernelTaps<PluginKernel>)
    const svc = await boot({ plugins: [daemon, resources, wrong] })
    const state = svc.kernel.host.plugins().find(one => one.name === 'acme.wrong')?.state
    assert.match(state?.status === 'failed' ? state.error : '', `taps ${name}, which is not a hook of the kernel`)
    await svc.close()
  }
})

test('a reload refused by a check leaves the running plugins unchanged', async () => {
  const seen: string[] = []
  const checking: KernelTaps<PluginKernel> = {
    check: async (_, { name, version }) =>
      name === 'acme.second' && version === '2' ? new Fault('not_signed', 422, 'version 2 is not signed') : undefined,
    leaving: (_, { owners }) => void seen.push(...owners),
  }
  const svc = await boot({ plugins: [daemon, resources, tapping('acme.first', checking), tapping('acme.second', {})] })
  const refused = await svc.kernel.host.reload(tapping('acme.second', {}, '2')).catch(error => error)
  assert.is(refused.code, 'reload_failed')
  assert.match(refused.message, 'version 2 is not signed')
  assert.equal(seen, [])
  const { state, version } = svc.kernel.host.plugins().find(({ name }) => name === 'acme.second') ?? {}
  assert.equal([state?.status, version], ['active', '1'])
  await svc.close()
})

test('a reload whose routes cannot be described is refused before the running version is released', async () => {
  const seen: string[] = []
  const watching: KernelTaps<PluginKernel> = { leaving: (_, { owners }) => void seen.push(...owners) }
  const svc = await boot({ plugins: [daemon, resources, tapping('acme.first', watching), tapping('acme.second', {})] })
  const broken = definePlugin({ name: 'acme.second', version: '2' }).surface({
    routes: [
      {
        method: 'GET',
        path: '/api/ext/acme.second/x',
        with: [describe('Test')],
        summary: 'Cannot be described',
        replies: { 200: v.custom(() => true) },
        handle: () => ({ status: 200, body: 1 }),
      },
    ],
  })
  const refused = await svc.kernel.host.reload(broken).catch(error => error)
  assert.is(refused.code, 'reload_failed')
  assert.equal(seen, [])
  await svc.close()
})

test('a throw in `written` aborts the transaction; a `write` tap is called only for its kinds', async () => {
  const requests: string[] = []
  let inner: PluginKernel | undefined
  let strict = false
  const svc = await boot({
    plugins: [
      daemon,
      resources,
      tapping('acme.first', {
        running: self => {
          inner = self
        },
        write: {
          leaf: (_self, _t, { verb }) => void requests.push(`leaf ${verb}`) as undefined,
          branch: () => void requests.push('branch') as undefined,
          '*': (_self, _t, { verb }) => void requests.push(`any ${verb}`) as undefined,
        },
        written: () => {
          if (strict) throw new Error('not to be written')
        },
      }),
    ],
  })
  const { records, db } = inner as PluginKernel
  await db.tx(t => records.put(t, operator, leaf('a')))
  assert.equal(requests.splice(0), ['any put', 'leaf put'])
  strict = true
  const failed = await db.tx(t => records.put(t, operator, leaf('b'))).catch(error => error)
  assert.is(failed.code, 'hook_failed')
  assert.match(failed.message, 'acme.first failed in written: not to be written')
  assert.is(failed.next, 'svc extension disable acme.first')
  assert.equal(
    records.list({ kind: 'leaf' }).map(({ id }) => id),
    ['a'],
  )
  await svc.close()
})

test.run()
