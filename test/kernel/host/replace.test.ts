import { rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import * as v from 'valibot'
import {
  definePlugin,
  type Gate,
  type Needs,
  type Plugin,
  type PluginKernel,
  surfaceOf,
  token,
} from '../../../kernel/plugin.js'
import configuration from '../../../plugins/platform/configuration/index.js'
import { bootBare as boot, temporaryFolder } from '../../harness/kernel.js'
import { boom, plain, refusal, Said } from './scene.js'

const tables = [{ id: '001', sql: 'CREATE TABLE base_count (n INTEGER NOT NULL) STRICT;' }]
const counting = (kernel: PluginKernel) => kernel.db.tx(t => void t.run('INSERT INTO base_count (n) VALUES (1)'))
const base = plain('base', { provides: 'base@1', tables, apply: counting })
const user = plain('user', { requires: ['base@1'] })
const counted: number[] = []
const other = (parts = {}) =>
  plain('vendor.base', {
    provides: 'base@1',
    replaces: 'base',
    path: '/api/base',
    tables,
    version: '7',
    apply: async kernel => {
      await counting(kernel as PluginKernel)
      counted.push(kernel.db.get<{ n: number }>('SELECT count(*) AS n FROM base_count')?.n ?? 0)
    },
    ...parts,
  })

type Svc = Awaited<ReturnType<typeof boot>>
const states = (svc: Svc) =>
  Object.fromEntries(
    svc.kernel.host
      .plugins()
      .flatMap(({ name, state, replacedBy }) =>
        name === 'configuration' ? [] : [[name, [state.status, replacedBy ?? ''].join(' ')]],
      ),
  )
const answer = async (svc: Svc) => (await svc.request('GET', '/api/base')).body

for (const plugins of [
  [base, user, other()],
  [other(), user, base],
] as readonly Plugin[][]) {
  test(`a replacement named by the operator takes over name, tables and routes: ${plugins.map(p => p.name)}`, async () => {
    const home = await temporaryFolder('replace')
    const before = await boot({ plugins: [configuration, base, user], home })
    await before.close()
    counted.length = 0
    const svc = await boot({ plugins, home, replace: ['vendor.base'] })
    assert.equal(states(svc), { base: 'active vendor.base', user: 'active ' })
    assert.equal(await answer(svc), { name: 'base', version: '7' })
    assert.equal(counted, [2])
    await svc.kernel.host.unload('base')
    assert.equal(states(svc), { base: 'active ', user: 'active ' })
    assert.equal(await answer(svc), { name: 'base', version: '1' })
    await svc.close()
    await rm(home, { recursive: true })
  })
}

test('a replacement without the setting of the operator fails with the next step, and the original continues', async () => {
  const svc = await boot({ plugins: [base, user, other()] })
  assert.equal(states(svc), { base: 'active ', user: 'active ', 'vendor.base': 'failed ' })
  const { state } = svc.kernel.host.plugins().at(-1) ?? {}
  assert.match(state?.status === 'failed' ? state.error : '', /plugins.replace in config.json names vendor.base/)
  await svc.close()
})

for (const [what, parts, why] of [
  ['throws', { apply: boom }, /^boom$/],
  ['waits', { requires: ['nothing@1'] }, /waits for .* nothing@1/],
  ['provides something else', { provides: 'base@2' }, /has to provide base@1/],
  ['takes a foreign route', { path: '/api/user' }, /\/api\/user is already registered by user/],
] as const) {
  test(`a replacement that ${what} at a boot leaves the original running and reports why under its own name`, async () => {
    const svc = await boot({ plugins: [base, user, other(parts)], replace: ['vendor.base'] })
    assert.equal(states(svc), { base: 'active ', user: 'active ', 'vendor.base': 'failed ' })
    const { state } = svc.kernel.host.plugins().at(-1) ?? {}
    assert.match(state?.status === 'failed' ? state.error : '', why)
    assert.equal(await answer(svc), { name: 'base', version: '1' })
    assert.equal(await svc.kernel.host.reload(other()), { status: 'active' })
    assert.equal(states(svc), { base: 'active vendor.base', user: 'active ' })
    await svc.kernel.host.unload('base')
    assert.equal(states(svc), { base: 'active ', user: 'active ' })
    await svc.close()
  })
}

const former = { 'old-base': 'base', 'old-user': 'user', inner: 'kernel' }

for (const at of ['a boot', 'run time']) {
  test(`a replacement by a former name replaces the provider of the same services, at ${at}`, async () => {
    const renamed = { ...other(), replaces: 'old-base' }
    const all = [base, user]
    const plugins = at === 'a boot' ? [renamed, ...all] : all
    const svc = await boot({ plugins, replace: ['vendor.base'], formerNames: former })
    if (at === 'run time') assert.equal(await svc.kernel.host.load(renamed), { status: 'active' })
    assert.equal(states(svc), { base: 'active vendor.base', user: 'active ' })
    assert.equal(await answer(svc), { name: 'base', version: '7' })
    await svc.kernel.host.unload('base')
    assert.equal(states(svc), { base: 'active ', user: 'active ' })
    await svc.close()
  })

  for (const [what, parts, replaces, why] of [
    ['provides nothing', { provides: undefined }, 'old-base', 'base: its replacement has to provide base@1'],
    ['replaces a part of a plugin without services', {}, 'old-user', 'user and cannot be replaced'],
    ['replaces a part of the kernel', {}, 'inner', 'the kernel and cannot be replaced'],
  ] as const) {
    test(`a replacement by a former name that ${what} fails at ${at} and names the successor`, async () => {
      const renamed = { ...other(parts), replaces }
      const all = [base, user]
      const plugins = at === 'a boot' ? [renamed, ...all] : all
      const svc = await boot({ plugins, replace: ['vendor.base'], formerNames: former })
      if (at === 'run time') await svc.kernel.host.load(renamed)
      assert.equal(states(svc), { base: 'active ', user: 'active ', 'vendor.base': 'failed ' })
      const { state } = svc.kernel.host.plugins().at(-1) ?? {}
      const error = `it replaces ${replaces}, which is now a part of ${why}`
      assert.equal(state, { status: 'failed', error })
      await svc.close()
    })
  }
}

test('a replacement at run time takes over, and the original returns when it fails or is unloaded', async () => {
  const home = await temporaryFolder('replace')
  await writeFile(path.join(home, 'config.json'), '{ "plugins": { "replace": ["vendor.base", "nobody"] } }')
  const svc = await boot({ plugins: [configuration, base, user], home })
  const { host } = svc.kernel
  assert.equal(host.unknownPlugins(), ['vendor.base', 'nobody'])
  assert.match(await refusal(host.load(other({ apply: boom }))), /base 7 did not start, 1 runs again: boom/)
  assert.equal(states(svc), { base: 'active ', user: 'active ' })
  assert.is(host.faults().at(-1)?.owner, 'vendor.base')
  // It has the tables of the one that it replaces, whether it brings their migrations or not.
  assert.equal(await host.load(other({ tables: undefined })), { status: 'active' })
  assert.equal(await host.reload(other()), { status: 'active' })
  assert.equal(host.unknownPlugins(), ['nobody'])
  assert.equal(states(svc), { base: 'active vendor.base', user: 'active ' })
  assert.equal(await host.reload(other({ version: '8' })), { status: 'active' })
  assert.equal(await answer(svc), { name: 'base', version: '8' })
  await host.unload('base')
  assert.equal(await answer(svc), { name: 'base', version: '1' })
  await svc.close()
  await rm(home, { recursive: true })
})

const extra = { id: 'vendor-001', sql: 'CREATE TABLE vendor_base_extra (n INTEGER NOT NULL) STRICT;' }
const writesBoth = async (kernel: PluginKernel<Needs>) => {
  await counting(kernel as PluginKernel)
  await kernel.db.tx(t => void t.run('INSERT INTO vendor_base_extra (n) VALUES (1)'))
}

for (const own of [[extra], [...tables, extra]]) {
  test(`a replacement with its own table gives way at run time and at the next start (${own.length})`, async () => {
    const home = await temporaryFolder('replace')
    const plugin = other({ tables: own, apply: writesBoth })
    const first = await boot({ plugins: [base, plugin], home, replace: ['vendor.base'] })
    assert.equal(states(first), { base: 'active vendor.base' })
    await first.kernel.host.unload('base')
    assert.equal(states(first), { base: 'active ' })
    assert.equal(await first.kernel.host.load(plugin), { status: 'active' })
    await first.close()
    const without = await boot({ plugins: [base], home })
    assert.equal(states(without), { base: 'active ' })
    await without.close()
    const again = await boot({ plugins: [base, plugin], home, replace: ['vendor.base'] })
    assert.equal(states(again), { base: 'active vendor.base' })
    await again.close()
    await rm(home, { recursive: true })
  })
}

/** Two plugins of the program: `base` with a hook and more that others use, `user` taps the hook. */
const Base = token<{ turning: Gate<[]> }>('base@1')
const hooked = (hooks: (kernel: PluginKernel) => unknown, head = {}, surface = {}) =>
  definePlugin({
    name: 'base',
    version: '1',
    provides: Base,
    service: async () =>
      class {
        constructor(kernel: PluginKernel) {
          Object.assign(this, hooks(kernel))
        }
      } as never,
    ...head,
  }).surface({ declares: [Said], ...surface })
const withHook = (kernel: PluginKernel) => ({ turning: kernel.hooks.gate('turning') })
const original = hooked(
  withHook,
  {},
  {
    events: [{ name: 'base.turned', payload: v.any() }],
    settings: [{ path: 'base.size', section: 'base', schema: v.any(), default: 1, apply: 'live' }],
    kinds: [{ name: 'base.leaf' }],
  },
)
const { tap } = surfaceOf<unknown>()
const tapping = (name: string) =>
  definePlugin({ name, version: '1', requires: { base: Base } }).surface({
    taps: [
      tap(
        Base,
        api => api.turning,
        () => async () => undefined,
      ),
    ],
  })
const replacing = { name: 'vendor.base', version: '7', replaces: 'base' }
const offers = original.surface

for (const [what, plugin, lacks] of [
  [
    'events, settings, kinds and registries',
    hooked(withHook, replacing, { declares: [] }),
    /lacks parts of base that are in use: kind base\.leaf, event base\.turned, setting base\.size, registry base\.said@1/,
  ],
  [
    'a tapped hook',
    hooked(() => ({}), replacing, offers),
    /user taps the hook turning, which the service of base@1 does not have/,
  ],
] as const) {
  test(`a replacement without ${what} is refused with a list, at boot and later, and the original runs`, async () => {
    const options = { plugins: [original, tapping('user')] }
    const running = { base: 'active ', user: 'active ' }
    const booted = await boot({ plugins: [...options.plugins, plugin], replace: ['vendor.base'] })
    assert.equal(states(booted), { ...running, 'vendor.base': 'failed ' })
    const { state } = booted.kernel.host.plugins().at(-1) ?? {}
    assert.match(state?.status === 'failed' ? state.error : '', lacks)
    await booted.close()
    const svc = await boot({ ...options, replace: ['vendor.base'] })
    assert.match(await refusal(svc.kernel.host.load(plugin)), lacks)
    assert.equal(states(svc), running)
    assert.equal(await svc.kernel.host.load(hooked(withHook, replacing, offers)), { status: 'active' })
    assert.equal(states(svc), { base: 'active vendor.base', user: 'active ' })
    await svc.close()
  })
}

test('a tap on a missing hook fails its own plugin, with the names of hook and token', async () => {
  const wrong = definePlugin({ name: 'acme.wrong', version: '1', requires: { base: Base } }).surface({
    taps: [
      tap(
        Base,
        api => (api as unknown as { turn: { ending: Gate<[]> } }).turn.ending,
        () => async () => undefined,
      ),
    ],
  })
  const svc = await boot({ plugins: [original, tapping('user'), wrong] })
  assert.equal(states(svc), { 'acme.wrong': 'failed ', base: 'active ', user: 'active ' })
  const { state } = svc.kernel.host.plugins()[0] ?? {}
  assert.match(state?.status === 'failed' ? state.error : '', /acme\.wrong taps the hook turn\.ending, .* base@1/)
  await svc.close()
})

test('an own table named like a table of the replaced plugin is refused', async () => {
  const odd = other({ tables: [...tables, { id: 'vendor-001', sql: 'CREATE TABLE base_extra (n INTEGER) STRICT;' }] })
  const svc = await boot({ plugins: [base, odd], replace: ['vendor.base'] })
  assert.equal(states(svc), { base: 'active ', 'vendor.base': 'failed ' })
  const { state } = svc.kernel.host.plugins().at(-1) ?? {}
  assert.match(state?.status === 'failed' ? state.error : '', /base_extra/)
  await svc.close()
})

test('tables of a removed plugin can be inherited unchanged by any other while they have no owner', async () => {
  const home = await temporaryFolder('heirs')
  const heir = (name: string, inherited: object = {}) =>
    plain(name, {
      inherits: [{ stream: 'base', prefixes: ['base_'], migrations: tables, ...inherited }],
      apply: counting,
    })
  const why = (svc: Svc, wanted: string) => {
    const { state } = svc.kernel.host.plugins().find(({ name }) => name === wanted) ?? {}
    return state?.status === 'failed' ? state.error : state?.status
  }
  const first = await boot({ plugins: [base, heir('vendor.thief'), heir('thief')], home })
  // Whether it comes with the program or later makes no difference.
  for (const name of ['vendor.thief', 'thief'])
    assert.match(`${why(first, name)}`, /the (table prefix base_|migration \S+ of base) is already registered by base/)
  await first.close()

  const more = [...tables, { id: '009', sql: 'CREATE TABLE base_more (n INTEGER) STRICT' }]
  const second = await boot({ plugins: [], home })
  await second.kernel.host.load(heir('vendor.more', { migrations: more })).catch(() => {})
  await second.kernel.host
    .load(heir('vendor.kernel', { stream: 'kernel', prefixes: ['kernel_'], migrations: [] }))
    .catch(() => {})
  await second.kernel.host.load(heir('vendor.heir'))
  assert.match(`${why(second, 'vendor.more')}`, /cannot inherit migration 009 of base: base never had it/)
  assert.match(`${why(second, 'vendor.kernel')}`, /cannot inherit the tables of the kernel/)
  assert.is(why(second, 'vendor.heir'), 'active')
  await second.close()

  const third = await boot({ plugins: [base], home })
  assert.is(why(third, 'base'), 'active', 'the one that they left can have them back')
  await third.close()
  await rm(home, { recursive: true })
})

test('a disabled plugin does not run, its dependents wait with the reason, and an unknown name is reported', async () => {
  const home = await temporaryFolder('disabled')
  await writeFile(path.join(home, 'config.json'), '{ "plugins": { "disabled": ["base", "typo"] } }')
  const svc = await boot({ plugins: [configuration, base, user, plain('top', { maybe: ['base@1'] })], home })
  assert.equal(states(svc), { base: 'disabled ', top: 'active ', user: 'waiting ' })
  const { state } = svc.kernel.host.plugins().at(-1) ?? {}
  assert.equal(state?.status === 'waiting' && state.missing, ['user', 'base@1 of base, which is disabled'])
  assert.equal(svc.kernel.host.unknownPlugins(), ['typo'])
  await svc.kernel.host.unload('base')
  assert.equal(await svc.kernel.host.load(base), {
    status: 'disabled',
    why: 'plugins.disabled names it',
  })
  await svc.close()
  await rm(home, { recursive: true })
})

test.run()
