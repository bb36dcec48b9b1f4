// proof, timeout: 120s: programs in other languages beside the daemon
import { cp, realpath, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { readManifest } from '../../plugins/delivery/extensions/manifest/manifest.js'
import { daemon, extensions, resources, workspaces } from '../../plugins/index.js'
import { temporaryFolder } from '../harness/kernel.js'
import { scene as daemonScene, isActive, isGone, type Wire } from '../plugins/delivery/extensions/scene.js'
import { scene, until } from '../plugins/delivery/subprocess-host/scene.js'

const examples = path.join(import.meta.dirname, '../../examples/extensions')

test('clock-node answers with the time, is healthy, and ends on request', async () => {
  const world = await scene()
  const root = await realpath(await temporaryFolder('clock'))
  await cp(path.join(examples, 'clock-node'), root, { recursive: true })
  const manifest = await readManifest(root)
  const subprocess = manifest.subprocess && { ...manifest.subprocess, health_check_interval: '50ms' }
  const { runtime, said } = world.run(root, { ...manifest, subprocess })
  await runtime.start()
  assert.equal(await runtime.call('provide_tools', {}), { tools: [{ id: 'now', handler: 'now' }] })
  const answer = (await runtime.call('tools/call', { tool: 'now', input: { zone: 'Asia/Tokyo' } })) as Wire
  assert.match(answer.time, /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/)
  assert.is(answer.told_by, `svc ${world.kernel.needs.host.version}`)
  const bad = await runtime.call('tools/call', { tool: 'now', input: { zone: 'No/Where' } }).catch(error => error)
  assert.match((bad as Error).message, /Invalid time zone/)
  await until(() => runtime.health().health === 'healthy')
  await runtime.stop()
  assert.equal(runtime.state, { status: 'stopped' })
  assert.match(said(), /^\[svc\] the process runs, pid \d+$/)
  await world.close()
  await rm(root, { recursive: true })
})

const broken = { 'extension.toml': 'name = "broken"\nversion = "1.0.0"\n[subprocess]\ncommand = "no-such-program"\n' }

test('processes dropped into a running daemon start and follow edits, kills and removals of their folder', async () => {
  const svc = await daemonScene({ broken })
  const dropped = path.join(svc.home, 'extensions')
  const drop = (name: string) => cp(path.join(examples, name), path.join(dropped, name), { recursive: true })
  const layouts = async () => (await svc.request('GET', '/api/resources/window_layout')).body.records as Wire[]
  const ids = async () => (await layouts()).map(({ id }) => id).join()
  const assertGone = (pid: number) => assert.throws(() => process.kill(pid, 0), /ESRCH/)

  const isAlive = (pid: number) => {
    try {
      return process.kill(pid, 0)
    } catch {
      return false
    }
  }

  await Promise.all([drop('clock-node'), drop('desks-python')])
  const clock = await svc.until('clock-node', isActive)
  const desks = await svc.until('desks-python', async found => isActive(found) && (await ids()) !== '')
  assert.is(await ids(), 'desks-review,desks-write')
  assert.equal((await layouts())[0].source, { kind: 'extension', id: 'desks-python' })

  await writeFile(path.join(dropped, 'desks-python/desks.txt'), 'Read\nReview\n')
  await svc.until('desks-python', async () => (await ids()) === 'desks-read,desks-review')
  const again = await svc.until('desks-python', isActive)
  assert.is.not(again.pid, desks.pid)
  assertGone(desks.pid)
  await svc.until('desks-python', async () => {
    const { body } = await svc.request('GET', '/api/extensions/desks-python/logs')
    return body.logs.some(({ message }: Wire) => message === 'published')
  })

  // It comes back after a second.
  process.kill(again.pid, 'SIGKILL')
  await svc.until('desks-python', found => found?.pid !== undefined && found.pid !== again.pid)

  const stuck = await svc.until('broken', found => found?.health === 'unhealthy')
  assert.match(stuck.health_message, /command not found: no-such-program/)

  await svc.request('POST', '/api/extensions/clock-node/disable')
  assertGone(clock.pid)
  const { pid } = await svc.until('desks-python', isActive)
  await svc.remove('desks-python')
  // It is listed no longer as soon as its folder is gone; its process has its time to end.
  await svc.until('desks-python', found => isGone(found) && !isAlive(pid))
  assert.is(await ids(), 'desks-read,desks-review')
  await svc.close()
})

test('desks-python publishes in its linked workspace; linked to all, it reports that it has none', async () => {
  const svc = await daemonScene({}, { plugins: [daemon, resources, workspaces, extensions] })
  const root = await realpath(await temporaryFolder('place'))
  const { id } = (await svc.request('POST', '/api/workspaces', { root_dir: root, name: 'place' })).body.workspace
  const link = (workspace: string) =>
    svc.request('POST', `/api/extensions/dev?workspace=${workspace}`, {
      origin_path: path.join(examples, 'desks-python'),
      generation_hash: 'a'.repeat(64),
    })
  assert.is((await link('place')).status, 201)
  const scopes = async () =>
    (await svc.request('GET', '/api/resources/window_layout')).body.records.map(({ scope }: Wire) => scope)
  await svc.until('desks-python', async () => (await scopes()).length > 0)
  assert.equal(await scopes(), [
    { kind: 'workspace', id },
    { kind: 'workspace', id },
  ])
  await svc.request('DELETE', '/api/extensions/desks-python?workspace=place')
  await link('*')
  await svc.until('desks-python', async () => {
    const { logs } = (await svc.request('GET', '/api/extensions/desks-python/logs')).body
    return logs.some(({ message }: Wire) => /--workspace/.test(message))
  })
  await svc.close()
  await rm(root, { recursive: true })
})

test.run()
