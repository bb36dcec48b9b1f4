import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { definePlugin, surfaceOf } from '../../../kernel/plugin.js'
import { type Relauncher, Relaunchers } from '../../../plugins/platform/restart/api.js'
import restart from '../../../plugins/platform/restart/index.js'
import { Operations, type StoredOperation } from '../../../plugins/platform/restart/operations.js'
import { isOpen, transitions, wayTo } from '../../../plugins/platform/restart/states.js'
import type { RestartStatus } from '../../../schemas/daemon/restart.js'
import { VirtualClock } from '../../../testing/virtual-clock.js'
import { boot, temporaryFolder } from '../../harness/kernel.js'

const path = '/api/settings/actions/restart'
const statuses = Object.keys(transitions) as RestartStatus[]
const { contribute } = surfaceOf<unknown>()

/** What the program contributes, as far as the daemon sees it. */
function program(relauncher: Partial<Relauncher> = {}) {
  const calls: string[] = []
  const whole: Relauncher = {
    prepare: async id => {
      calls.push(`prepare ${id}`)
      return { pid: 4242, release: () => void calls.push('release') }
    },
    ready: Promise.resolve(),
    stop: () => void calls.push('stop'),
    ...relauncher,
  }
  const plugin = definePlugin({ name: 'program', version: '1' }).surface({
    registries: [contribute(Relaunchers, () => [whole])],
  })
  return { calls, plugin }
}

const operation = (id: string, more: Partial<StoredOperation> = {}): StoredOperation => ({
  operation_id: id,
  status: 'pending',
  active_session_count: 0,
  old_pid: 1,
  old_started_at: '2030-01-01T00:00:00.000Z',
  old_socket_path: '/nowhere',
  started_at: '2030-01-01T00:00:00.000Z',
  updated_at: '2030-01-01T00:00:00.000Z',
  ...more,
})
const idOf = (n: number) => `rst_${n.toString(16).padStart(16, '0')}`

test('an operation makes only the transitions of the table, from every status', async () => {
  const home = await temporaryFolder('home')
  const operations = new Operations(home)
  for (const from of statuses) {
    for (const to of statuses) {
      operations.write(operation(idOf(1), { status: from }))
      const seen: string[] = [from]
      const { write } = operations
      operations.write = one => {
        seen.push(one.status)
        write.call(operations, one)
      }
      const after = operations.advance(idOf(1), to, '2030-01-02T00:00:00.000Z')
      operations.write = write
      const way = wayTo(from, to) ?? []
      assert.equal(seen, [from, ...way])
      assert.is(after?.status, way.at(-1) ?? from)
      assert.is(operations.read(idOf(1))?.status, after?.status)
      assert.is(after?.completed_at !== undefined, way.length > 0 && !isOpen(to), `${from} to ${to}`)
      for (const [n, status] of way.entries()) assert.ok(transitions[seen[n] as RestartStatus].includes(status))
    }
  }
  assert.equal(
    statuses.filter(status => !isOpen(status)),
    ['ready', 'failed'],
  )
  assert.equal(
    statuses.filter(isOpen).map(status => transitions[status].includes('failed')),
    [true, true, true, true],
  )
  await rm(home, { recursive: true })
})

test('an embedded daemon refuses to restart itself and continues', async () => {
  const host = await boot({ plugins: [restart] })
  const { status, body } = await host.request('POST', path)
  assert.equal([status, body.code], [500, 'restart_unsupported'])
  assert.match(body.error, /the program in which this daemon is embedded/)
  assert.is((await host.request('GET', `${path}/rst_0000000000000000`)).status, 404)
  assert.is((await host.request('GET', `${path}/..%2F..%2Fconfig`)).status, 404)
  await host.close()
})

test('a request starts one operation, joined by a second request and ended by the next daemon', async () => {
  const home = await temporaryFolder('home')
  const clock = new VirtualClock()
  const { calls, plugin } = program()
  const host = await boot({ plugins: [restart, plugin], home, clock })
  const [first, second] = await Promise.all([host.request('POST', path), host.request('POST', path)])
  assert.is(first.status, 202)
  assert.equal(second.body, first.body)
  const { operation_id: id, status_url, active_session_count } = first.body
  assert.equal([first.body.status, status_url, active_session_count], ['pending', `${path}/${id}`, 0])
  assert.equal(calls, [`prepare ${id}`, 'release'])
  const file = join(home, 'restarts', `${id}.json`)
  assert.is(statSync(file).mode & 0o777, 0o600)
  assert.is(JSON.parse(readFileSync(file, 'utf8')).helper_pid, 4242)
  await clock.advance(1000)
  assert.is((await host.request('GET', status_url)).body.status, 'stopping')
  assert.equal(calls, [`prepare ${id}`, 'release', 'stop'])
  assert.is((await host.request('POST', path)).body.operation_id, id)
  await host.close()

  await clock.advance(1000)
  const next = await boot({ plugins: [restart, plugin], home, clock })
  const { body } = await next.request('GET', status_url)
  assert.equal([body.status, body.new_pid, body.old_pid], ['ready', process.pid, process.pid])
  assert.ok(body.completed_at >= body.started_at)
  assert.is(body.helper_pid, undefined)
  assert.is.not((await next.request('POST', path)).body.operation_id, id)
  await next.close()
  await rm(home, { recursive: true })
})

test('an operation without a started helper fails with the reason, and the daemon continues', async () => {
  const home = await temporaryFolder('home')
  let broken = true
  const { plugin } = program({
    prepare: async () => {
      if (broken) throw new Error('no process is left')
      return { pid: 1, release: () => {} }
    },
  })
  const host = await boot({ plugins: [restart, plugin], home })
  const { status, body } = await host.request('POST', path)
  assert.equal([status, body.code], [500, 'restart_failed'])
  assert.match(body.error, /no process is left; the daemon keeps running/)
  assert.equal(new Operations(home).open(), undefined)
  broken = false
  assert.is((await host.request('POST', path)).status, 202)
  await host.close()
  await rm(home, { recursive: true })
})

test('twenty ended operations are kept for up to thirty days, and foreign files stay', async () => {
  const home = await temporaryFolder('home')
  const operations = new Operations(home)
  const day = (n: number) => new Date(Date.UTC(2030, 0, 1 + n)).toISOString()
  for (let n = 0; n < 50; n++) {
    const more = { status: n % 2 ? ('ready' as const) : ('failed' as const), started_at: day(n) }
    operations.write(operation(idOf(n), more))
  }
  operations.write(operation(idOf(99), { started_at: day(0) }))
  writeFileSync(join(operations.folder, 'notes.txt'), 'mine')
  writeFileSync(join(operations.folder, `${idOf(77)}.json`), '{"status":"ready"}')
  operations.prune(Date.UTC(2030, 0, 50))
  const kept = operations.list().map(({ operation_id }) => operation_id)
  assert.equal(kept, [...Array.from({ length: 20 }, (_, n) => idOf(49 - n)), idOf(99)])
  operations.prune(Date.UTC(2031, 0, 1))
  assert.equal(
    operations.list().map(({ operation_id }) => operation_id),
    [idOf(99)],
  )
  assert.equal(readdirSync(operations.folder).sort(), ['notes.txt', `${idOf(77)}.json`, `${idOf(99)}.json`])
  await rm(home, { recursive: true })
})

test.run()
