import { chmod, mkdir, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import * as v from 'valibot'
import type { PluginInfo } from '../../../kernel/platform.js'
import { definePlugin, kind, surfaceOf } from '../../../kernel/plugin.js'
import { type Check, HELD_AT_START } from '../../../plugins/desk/daemon/api.js'
import { pluginItems, resolverItems, START_AGAIN, safeModeItems } from '../../../plugins/desk/daemon/checks.js'
import { safeModeReason } from '../../../plugins/desk/daemon/hold.js'
import { processItems } from '../../../plugins/desk/daemon/home-checks.js'
import daemon from '../../../plugins/desk/daemon/index.js'
import disk from '../../../plugins/platform/disk/index.js'
import { VirtualClock } from '../../../testing/virtual-clock.js'
import { boot, temporaryFolder } from '../../harness/kernel.js'
import { codes, doctor, guest, item } from '../guest-plugin.js'

test('doctor: items are ordered by urgency, then id; counts and overall status match', async () => {
  const found = [item('info', 'b'), item('warning', 'd'), item('error', 'c'), item('warning', 'a')]
  const { plugin } = guest({ checks: [{ id: 'guest.all', category: 'guest', run: async () => found }] })
  const host = await boot({ plugins: [daemon, plugin] })
  const report = await doctor(host, '?only=guest')
  assert.equal(
    report.items.map((entry: { id: string }) => entry.id),
    ['c', 'a', 'd', 'b'],
  )
  assert.equal(report.summary, { total: 4, counts_by_severity: { error: 1, warning: 2, info: 1 } })
  assert.is(report.status, 'error')
  await host.close()
})

test('doctor: only and exclude take ids and categories, quiet omits healthy items, unknown names are refused', async () => {
  const checks = [
    { id: 'guest.one', category: 'guest', run: async () => [item('info', 'guest.one', 'one_ready')] },
    { id: 'guest.two', category: 'guest', run: async () => [item('info', 'guest.two', 'two_news')] },
  ]
  const { plugin } = guest({ checks })
  const host = await boot({ plugins: [daemon, plugin] })
  assert.equal(codes(await doctor(host, '?only=guest')), ['one_ready', 'two_news'])
  assert.equal(codes(await doctor(host, '?only=guest.one,%20guest.two&exclude=guest.two')), ['one_ready'])
  assert.equal(codes(await doctor(host, '?quiet=1&exclude=daemon.node')), ['two_news'])
  const all = await doctor(host)
  for (const code of ['daemon_status_ok', 'plugins_ok', 'config_ok', 'store_ok', 'home_perms_ok', 'reconcile_ok']) {
    assert.ok(codes(all).includes(code), code)
  }
  for (const query of ['?only=nonsense', '?exclude=guest,nonsense']) {
    const { status, body } = await host.request('GET', `/api/doctor${query}`)
    assert.equal([status, body.code], [400, 'unknown_component'])
    assert.match(body.details.known, 'guest.one')
  }
  await host.close()
})

test('doctor: invisible processes and secrets with two resolvers are errors', async () => {
  assert.equal(
    processItems(false).map(item => [item.code, item.severity]),
    [['proc_unreadable', 'error']],
  )
  const resolver = (owner: string, scheme: string) => ({ owner, entry: { scheme } })
  const items = resolverItems([resolver('vault', 'vault'), resolver('daemon', 'env'), resolver('acme.keys', 'vault')])
  assert.equal(
    items.map(item => [item.id, item.code]),
    [['daemon.secrets.vault', 'secret_resolver_conflict']],
  )
  assert.match(items[0]?.message ?? '', 'vault and acme.keys resolve vault: references')
})

test('doctor: safe mode of a held home is left by its confirmation and a restart', () => {
  const nextOf = (why: string | undefined, isHeld: boolean) =>
    safeModeItems(why, isHeld).map(({ message, suggested_command: next }) => [message.split(': ')[1], next])
  assert.equal(nextOf(undefined, false), [])
  assert.equal(nextOf('it crashed', false), [['it crashed', START_AGAIN]])
  const why = safeModeReason(HELD_AT_START, true)
  assert.equal(nextOf(why, true), [[HELD_AT_START, 'svc backup confirm']])
  const confirmed = safeModeReason(HELD_AT_START, false)
  assert.equal(nextOf(confirmed, false), [
    ['the daemon started while the home was held; run svc daemon restart', START_AGAIN],
  ])
  assert.is(safeModeReason('it crashed', false), 'it crashed')
})

test('doctor: a probe that starts programs runs only on request', async () => {
  const ran: string[] = []
  const run = (name: string) => async () => {
    ran.push(name)
    return []
  }
  const checks: Check[] = [{ id: 'guest.both', category: 'guest', run: run('look'), probe: run('probe') }]
  const { plugin } = guest({ checks })
  const host = await boot({ plugins: [daemon, plugin] })
  await doctor(host, '?only=guest')
  await doctor(host, '?only=guest&probe=true')
  assert.equal(ran, ['look', 'probe'])
  await host.close()
})

test('doctor: probes that throw, give garbage or never answer are items; the others answer', async () => {
  const clock = new VirtualClock()
  let aborted = false
  const checks: Check[] = [
    {
      id: 'guest.throws',
      category: 'guest',
      run: () => {
        throw new Error('broken')
      },
    },
    { id: 'guest.garbage', category: 'guest', run: async () => [{ id: 1 }] as never },
    {
      id: 'guest.hangs',
      category: 'guest',
      run: signal =>
        new Promise(() => {
          signal.addEventListener('abort', () => {
            aborted = true
          })
        }),
    },
    { id: 'guest.warns', category: 'guest', run: async () => [item('warn', 'guest.warns', 'guest_warns')] },
    { id: 'guest.fine', category: 'guest', run: async () => [item('info', 'guest.fine', 'guest_ok')] },
  ]
  const { plugin } = guest({ checks })
  const host = await boot({ plugins: [daemon, plugin], clock })
  const answer = doctor(host, '?only=guest')
  // The request itself takes turns of the event loop before its probes begin.
  for (let i = 0; i < 20 && !aborted; i++) await clock.advance(1000)
  const report = await answer
  assert.equal(
    report.items.map((entry: { id: string; code: string }) => `${entry.id} ${entry.code}`),
    [
      'guest.garbage probe_failed',
      'guest.throws probe_failed',
      'guest.warns probe_failed',
      'guest.hangs probe_timeout',
      'guest.fine guest_ok',
    ],
  )
  assert.is(aborted, true)
  await host.close()
})

test('doctor: an open home and a readable configuration with a secret are named with the next command', async () => {
  const home = await temporaryFolder('perms')
  const config = path.join(home, 'config.json')
  await writeFile(config, '{ "plugins": { "vendor.x": { "api_key": "x1y2" } } }')
  await chmod(config, 0o644)
  const host = await boot({ plugins: [daemon], home })
  await chmod(home, 0o755)
  const report = await doctor(host, '?only=home.permissions')
  assert.equal(codes(report), ['secrets_perms_wrong', 'home_perms_wrong'])
  assert.match(report.items[0].suggested_command, /^chmod 0600 .*config\.json$/)
  assert.not.match(JSON.stringify(report), 'x1y2')
  await chmod(config, 0o600)
  await chmod(home, 0o700)
  assert.equal(codes(await doctor(host, '?only=home.permissions')), ['home_perms_ok'])
  await host.close()
  await rm(home, { recursive: true })
})

test('doctor and status report settings without an owner and a change that waits for the next start', async () => {
  const home = await temporaryFolder('config')
  const config = path.join(home, 'config.json')
  await writeFile(config, '{ "plugins": { "vendor.x": { "size": 3 } } }')
  const host = await boot({ plugins: [daemon], home, listen: ['socket'] })
  assert.equal(codes(await doctor(host, '?only=config')), ['config_unowned'])
  await writeFile(config, '{ "plugins": { "vendor.x": { "size": 4 } }, "daemon": { "socket": "/elsewhere.sock" } }')
  let found: string[] = []
  for (let tries = 0; tries < 2400 && !found.includes('config_restart_required'); tries++) {
    await new Promise(resolve => setTimeout(resolve, 25))
    found = codes(await doctor(host, '?only=config'))
  }
  assert.equal(found, ['config_restart_required', 'config_unowned'])
  const { body } = await host.request('GET', '/api/status')
  assert.equal([body.config.restart_required, body.config.apply_state], [true, 'pending_apply'])
  await host.close()
  await rm(home, { recursive: true })
})

test('a missing home is an error, not a crash', async () => {
  const host = await boot({ plugins: [daemon, disk] })
  // A write that is under way would find its files gone and end the store, which is another story.
  for (let written = -1; written !== host.kernel.host.store().transactions; ) {
    written = host.kernel.host.store().transactions
    await host.request('GET', '/api/status/identity')
    await new Promise(resolve => setTimeout(resolve, 50))
  }
  await rm(host.home, { recursive: true })
  assert.equal(codes(await doctor(host, '?only=home.permissions')), ['home_path_missing'])
  assert.equal(codes(await doctor(host, '?only=home.disk')), ['probe_failed'])
  await mkdir(host.home, { mode: 0o700 })
  await host.close().catch(() => {})
})

test('an unapplied record and a failed plugin are named, and the daemon is degraded', async () => {
  const Note = kind({ name: 'note', spec: v.object({ text: v.string() }), maxBytes: 1000 })
  const { reconciler } = surfaceOf<object>()
  const notes = definePlugin({ name: 'notes', version: '1.0.0', service: async () => class {} }).surface({
    kinds: [Note],
    reconcilers: [
      reconciler({
        kind: Note,
        run: (_, batch) => {
          for (const { id, spec } of batch.records)
            if (spec.text === 'poison') batch.fail(id, new Error('cannot be read'))
        },
      }),
    ],
  })
  const broken = definePlugin({
    name: 'broken',
    version: '1.0.0',
    service: async () => {
      throw new Error('will not start')
    },
  }).surface({})
  const { plugin, seen } = guest()
  const host = await boot({ plugins: [daemon, notes, plugin, broken] })
  const { records, db, actor, needs } = seen.kernel
  const put = (id: string, text: string, name = 'note') =>
    db.tx(t => records.put(t, actor, { kind: name, id, scope: { kind: 'global' }, spec: { text } }))
  await put('good', 'hello')
  await put('bad', 'poison')
  await put('odd', 'raw', 'stranger')
  await needs.reconcile.settled([{ kind: 'note', id: 'bad' }], { timeoutMs: 5000 })
  const { body } = await host.request('GET', '/api/status')
  assert.is(body.daemon.status, 'degraded')
  assert.equal(body.health.reconcile.failing, ['note'])
  assert.equal(
    body.health.reconcile.kinds.map((row: { kind: string; status: string; records: number }) => [
      row.kind,
      row.status,
      row.records,
    ]),
    [
      ['note', 'failing', 2],
      ['stranger', 'unregistered', 1],
    ],
  )
  assert.is(body.health.reconcile.quarantined[0].id, 'bad')
  assert.is(body.health.plugins.find((entry: { name: string }) => entry.name === 'broken').status, 'failed')
  const report = await doctor(host, '?only=resources.reconcile,daemon.plugins')
  const named = report.items.map((entry: { id: string; code: string }) => `${entry.id} ${entry.code}`)
  assert.equal(named, [
    'daemon.plugins.broken plugin_failed',
    'resources.reconcile.note kind_failing',
    'resources.reconcile.note/bad record_quarantined',
    'resources.kinds.stranger kind_unregistered',
  ])
  assert.match(report.items[2].message, 'cannot be read')
  await put('bad', 'healed')
  await needs.reconcile.settled([{ kind: 'note', id: 'bad' }], { timeoutMs: 5000 })
  assert.equal((await host.request('GET', '/api/status')).body.health.reconcile.failing, [])
  await host.close()
})

test('a plugin that waits for a disabled one names the command that lets it run', () => {
  const info = (name: string, state: PluginInfo['state']) => ({ name, state }) as PluginInfo
  const off = { status: 'disabled', why: 'plugins.disabled names it' } as const
  const waits = (...missing: string[]) => ({ status: 'waiting', missing }) as const
  const plugins = [
    info('installer', off),
    info('tools', off),
    info('bundles', waits('bundles', 'extensions', 'installer@1 of installer, which is disabled')),
    info('other', waits('other', 'things@1, which no plugin provides')),
  ]
  assert.equal(
    pluginItems(plugins).map(item => item.suggested_command),
    [`svc config set plugins.disabled '["tools"]'`, undefined],
  )
})

test.run()
