import { execFileSync } from 'node:child_process'
import { open, rm, stat, statfs } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { DiskSpace } from '../../../../kernel/plugin.js'
import { automation, daemon, disk, resources } from '../../../../plugins/index.js'
import { DiskLimits } from '../../../../plugins/platform/disk/disk-guard.js'
import { probe } from '../../../../testing/traces.js'
import { VirtualClock } from '../../../../testing/virtual-clock.js'
import { openWorld } from '../../../fixtures/session-world.js'
import { boot, type TestKernel, temporaryFolder } from '../../../harness/kernel.js'
import { guest } from '../../guest-plugin.js'
import { body, notes, outcome } from '../resource-scene.js'

const MIB = 2 ** 20
const { reserve, short, freshMs } = DiskLimits
/** Room with which writing goes on while the reserve is whole. */
const enough = DiskLimits.enough - reserve
const reserveOf = (home: string) => path.join(home, 'cache', 'reserve')

/** Waits for what happens behind the requests; fails after a long while, for the machine may be busy. */
async function eventually(look: () => unknown, what: string) {
  for (let tries = 0; tries < 6000; tries++) {
    if (await look()) return
    await new Promise(resolve => setTimeout(resolve, 10))
  }
  assert.unreachable(`waited in vain until ${what}`)
}

const isReserved = async (home: string) => {
  const found = await stat(reserveOf(home)).catch(() => undefined)
  return found?.size === reserve && found.blocks * 512 >= reserve
}

/** A kernel with records whose disk has `room.free` bytes free. */
async function scene(home?: string) {
  const room = { free: 100 * enough }
  const clock = new VirtualClock()
  const { plugin, seen } = guest()
  const space = probe({ disk: DiskSpace })
  const plugins = [daemon, disk, resources, notes().plugin, plugin, space.plugin]
  const host = await boot({ plugins, clock, freeBytes: async () => room.free, ...(home ? { home } : {}) })
  const set = async (free: number) => {
    room.free = free
    await clock.advance(freshMs)
  }
  return { host, room, clock, set, seen, space }
}

const put = (host: TestKernel, id: string) => outcome(host, 'PUT', `/api/resources/note/${id}`, body('x'))

test('a full disk refuses writes and new work with 507, serves reads, stops and deletions, and recovers', async () => {
  const { host, set, seen, space } = await scene()
  assert.is(await put(host, 'a'), '201')
  await eventually(() => isReserved(host.home), 'the reserve is there')
  await set(short - 1)
  const reply = await host.request('PUT', '/api/resources/note/b', body('x'))
  assert.equal([reply.status, reply.body.code], [507, 'disk_full'])
  assert.match(reply.body.error, '16.0 MiB are free')
  assert.ok(reply.body.details.next)
  assert.ok(await isReserved(host.home), 'no write has needed it')
  assert.is(await outcome(host, 'POST', '/api/guest/work'), '507 disk_full')
  await seen.daemon.admit('work').then(
    () => assert.unreachable('work of a plugin was admitted'),
    error => assert.is(error.code, 'disk_full'),
  )
  assert.is(space.kernel().needs.disk.writable, false)

  assert.is(await outcome(host, 'GET', '/api/resources/note/a'), '200')
  const { body: status } = await host.request('GET', '/api/status')
  assert.is(status.daemon.status, 'degraded')
  assert.equal(status.health.disk, { status: 'full', free_bytes: short - 1 })
  assert.is(status.health.persistence.status, 'degraded')
  const doctor = (await host.request('GET', '/api/doctor?only=home.disk')).body
  assert.is(doctor.items[0].code, 'home_disk_space_critical')
  assert.match(doctor.items[0].message, '507')
  assert.is(await outcome(host, 'POST', '/api/db/checkpoint'), '200')
  assert.is(await outcome(host, 'POST', '/api/drain'), '200')
  assert.is(await outcome(host, 'POST', '/api/undrain'), '200')
  assert.is(await outcome(host, 'DELETE', '/api/resources/note/a', { expected_version: 1 }), '204')

  await set(enough - 1)
  assert.is(await put(host, 'b'), '507 disk_full', 'what is not quite enough')
  await set(enough)
  assert.is(await put(host, 'b'), '201')
  await seen.daemon.admit('work')
  await eventually(() => isReserved(host.home), 'the reserve is there again')
  assert.is((await host.request('GET', '/api/status')).body.daemon.status, 'ok')
  await host.close()
})

test('the refusal precedes the body, and a measurement is cached for a moment', async () => {
  const { host, set, room } = await scene()
  await eventually(() => isReserved(host.home), 'the reserve is there')
  await set(short - 1)
  const large = { ...body('x'), more: 'x'.repeat(6 * MIB) }
  assert.is(await outcome(host, 'PUT', '/api/resources/note/a', large), '507 disk_full')
  room.free = enough
  assert.is(await put(host, 'a'), '507 disk_full')
  await set(enough)
  assert.is(await outcome(host, 'PUT', '/api/resources/note/a', large), '413 payload_too_large')
  await host.close()
})

test('the disk is also checked without requests; the reserve is kept for the next start', async () => {
  const home = await temporaryFolder('full')
  const { host, room, clock } = await scene(home)
  await eventually(() => isReserved(home), 'the reserve is there')
  room.free = 0
  const writable = async () => (await host.request('GET', '/api/status')).body.health.disk.status === 'ok'
  await clock.advance(DiskLimits.pollMs[1])
  await eventually(async () => !(await writable()), 'it is seen')
  await host.close()
  assert.ok(await isReserved(home))
  const full = await boot({ plugins: [daemon, resources], home, clock, freeBytes: async () => room.free })
  assert.is(await outcome(full, 'GET', '/api/resources'), '200')
  assert.ok(await isReserved(home), 'no write has needed it')
  await full.close()
  await rm(home, { recursive: true })
})

test('the disk is checked as often as a program might fill it', async () => {
  const clock = new VirtualClock()
  let looks = 0
  let free = 4 * 1024 * MIB
  const freeBytes = async () => {
    looks++
    return free
  }
  const host = await boot({ plugins: [daemon, disk], clock, freeBytes })
  const looksIn = async (ms: number) => {
    const before = looks
    await clock.advance(ms)
    await new Promise(resolve => setTimeout(resolve, 50))
    return looks - before
  }
  await looksIn(4000)
  assert.equal([await looksIn(3900), await looksIn(200)], [0, 1])
  free = MIB
  await looksIn(4000)
  assert.equal([await looksIn(800), await looksIn(200)], [0, 1])
  await host.close()
})

test('a file system without free space figures blocks no request', async () => {
  const host = await boot({
    plugins: [daemon, disk, resources, notes().plugin],
    freeBytes: async () => {
      throw new Error('not supported')
    },
  })
  assert.is(await put(host, 'a'), '201')
  assert.equal((await host.request('GET', '/api/status')).body.health.disk, { status: 'ok' })
  assert.is((await host.request('GET', '/api/doctor?only=home.disk')).body.items[0].code, 'probe_failed')
  await host.close()
})

test('a full disk during work admits nothing new, and running work can be read, answered, canceled and stopped', async () => {
  const room = { free: 100 * enough }
  const world = await openWorld({ plugins: [automation], freeBytes: async () => room.free })
  try {
    const ask = async (method: string, url: string, sent?: unknown) => outcome(world.kernel, method, url, sent)
    await world.agent('plain')
    const job = { name: 'j', agent_name: 'plain', prompt: 'say hi', scope: 'workspace', enabled: false }
    const made = await world.kernel.request('POST', '/api/automation/jobs', {
      ...job,
      workspace_id: world.workspaceId,
      schedule: { mode: 'every', interval: '24h' },
    })
    assert.is(made.status, 201, JSON.stringify(made.body))
    const [busy, idle] = [await world.session('plain'), await world.session('plain')]
    await world.prompt(idle.at, 'say hello')
    assert.match(await ask('POST', `${busy.at}/prompt`, { text: 'hang' }), /^20[02]/)
    await world.until(busy.at, event => event.type === 'user_message')

    await eventually(() => isReserved(world.kernel.home), 'the reserve is there')
    room.free = short - 1
    await eventually(
      async () => (await ask('POST', `${idle.at}/prompt`, { text: 'say no' })) === '507 disk_full',
      'full',
    )
    assert.is(
      await ask('POST', '/api/sessions', { workspace: world.workspaceId, agent_name: 'plain' }),
      '507 disk_full',
    )
    assert.is(await ask('POST', `/api/automation/jobs/${made.body.job.id}/trigger`), '507 disk_full')
    assert.is(await ask('PATCH', idle.at, { name: 'other' }), '507 disk_full')
    assert.is(await ask('GET', `${busy.at}/events`), '200')
    assert.is(await ask('GET', '/api/status'), '200')
    const wrong = { request_id: 'none', turn_id: 'none', decision: 'allow-once' }
    assert.not.match(await ask('POST', `${busy.at}/approve`, wrong), '507')
    assert.is(await ask('POST', `${busy.at}/prompt/cancel`), '200')
    await world.until(busy.at, event => event.type === 'done' || event.type === 'error')
    assert.is(await ask('POST', `${busy.at}/stop`), '204')
    assert.is((await world.row(busy.id)).state, 'stopped')
    assert.is(await ask('DELETE', idle.at), '204')
    assert.is(await ask('DELETE', `/api/automation/jobs/${made.body.job.id}`), '204')

    room.free = enough
    await eventually(async () => {
      const status = await ask('POST', '/api/sessions', { workspace: world.workspaceId, agent_name: 'plain' })
      return status === '201'
    }, 'new work begins')
  } finally {
    await world.close()
  }
})

/** A file system of 64 MiB in memory; nothing where mounting is not allowed. */
async function smallDisk(): Promise<{ folder: string; remove(): Promise<void> } | undefined> {
  const folder = await temporaryFolder('disk')
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64m', 'svc-test', folder], { stdio: 'pipe' })
  } catch (error) {
    console.log(`not run on a small file system, mounting is not allowed: ${(error as Error).message.trim()}`)
    await rm(folder, { recursive: true })
    return undefined
  }
  return {
    folder,
    async remove() {
      execFileSync('umount', [folder])
      await rm(folder, { recursive: true })
    },
  }
}

test('a real file system of 64 MiB gives 507 before a failure when filled, and works again when freed', async () => {
  const disk = await smallDisk()
  if (!disk) return
  const home = path.join(disk.folder, 'home')
  const filler = path.join(disk.folder, 'filler')
  const host = await boot({ plugins: [daemon, resources, notes().plugin], home })
  try {
    assert.is(await put(host, 'before'), '201')
    await eventually(() => isReserved(home), 'the reserve is there')
    const file = await open(filler, 'w')
    try {
      for (const full = Buffer.alloc(MIB, 1); ; await file.write(full)) {
        const { bavail, bsize } = await statfs(disk.folder)
        if (bavail * bsize < MIB) break
      }
    } finally {
      await file.close()
    }
    let written = 0
    await eventually(async () => {
      const said = await put(host, `w${written++}`)
      return said === '507 disk_full'
    }, 'writes are refused')
    for (let i = 0; i < 20; i++) {
      assert.is(await outcome(host, 'POST', '/api/drain'), '200')
      assert.is(await outcome(host, 'POST', '/api/undrain'), '200')
    }
    assert.is(await outcome(host, 'DELETE', '/api/resources/note/before', { expected_version: 1 }), '204')
    assert.is((await host.request('GET', '/api/db/status')).body.disk.status, 'full')
    assert.is(await put(host, 'during'), '507 disk_full')
    await rm(filler)
    await eventually(async () => (await put(host, 'after')) === '201', 'writes go on')
    await eventually(() => isReserved(home), 'the reserve is there again')
    assert.is((await host.request('GET', '/api/db/status')).body.status, 'ok', 'no write of the store failed')
    assert.is(await outcome(host, 'GET', '/api/resources/note/during'), '404 record_not_found')
  } finally {
    await host.close()
    await disk.remove()
  }
})

test.run()
