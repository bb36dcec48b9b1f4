import { appendFile, readFile, rename, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { ApplyLog } from '../../../../plugins/desk/settings/apply-log.js'
import { tailOf } from '../../../../plugins/desk/settings/log-tail.js'
import { inTree } from '../../../../plugins/index.js'
import { StartedDaemon } from '../../../../testing/daemon.js'
import { boot, type Reply, temporaryFolder } from '../../../harness/kernel.js'
import { inFolder, watchedDisk } from '../../../kernel/store/harness.js'
import { scene } from './scene.js'

test('the log is followed as a stream', async () => {
  const daemon = await StartedDaemon.start()
  try {
    const { body } = await daemon.request('GET', '/api/settings/observability')
    const { log_tail: tail } = body as { log_tail: { available: boolean; stream_url: string } }
    assert.equal(tail, { available: true, stream_url: '/api/settings/observability/log-tail', transport: 'sse' })
    const stream = await daemon.stream(tail.stream_url)
    for (let msg = ''; msg !== 'daemon is ready'; ) msg = ((await stream.next('log')).data as { msg: string }).msg
  } finally {
    await daemon.stop()
  }
})

test('a tail begins with the last lines, waits for a missing file, and continues after a rotation', () =>
  inFolder(async folder => {
    const file = path.join(folder, 'svc.log')
    const ended = new AbortController()
    const clock = { sleep: async () => void (await new Promise(resolve => setTimeout(resolve, 5))) }
    const lines = tailOf(file, clock, ended.signal)
    const next = async () => ((await lines.next()).value as { data: { msg: string } }).data.msg
    const first = next()
    await writeFile(file, '{"msg":"one"}\nno json\n{"msg":"ä')
    assert.equal([await first, await next()], ['one', 'no json'])
    await appendFile(file, 'ö"}\n')
    assert.is(await next(), 'äö')
    await rename(file, `${file}.1`)
    await writeFile(file, '{"msg":"rotated"}\n')
    assert.is(await next(), 'rotated')
    ended.abort()
    assert.is((await lines.next()).done, true)
  }))

/** A disk on which a call on the database fails, and every later one, once `left` of them went well. */
function brokenAfter(name: 'fsync' | 'pwrite') {
  const state = { left: Number.POSITIVE_INFINITY }
  const disk = watchedDisk(({ name: called, file }) => {
    if (called === name && file.includes('svc.db') && --state.left < 0)
      throw Object.assign(new Error('EIO: i/o error'), { code: 'EIO' })
  })
  return { disk, state }
}

for (const name of ['fsync', 'pwrite'] as const)
  test(`file, settings, record and audit agree after a restart, whichever ${name} of a change fails`, async () => {
    for (const left of [0, 1, 2]) {
      const home = await temporaryFolder('home')
      const file = path.join(home, 'config.json')
      await writeFile(file, '{}')
      const plugins = inTree
      const { disk, state } = brokenAfter(name)
      const broken = await boot({ home, plugins, disk })
      await broken.request('GET', '/api/settings/apply')
      state.left = left
      const { status, body } = await broken.request('PATCH', '/api/settings/automation', {
        config: { max_concurrent_jobs: 7 },
      })
      assert.equal([status, body.code], [503, 'store_failed'])
      await broken.close().catch(() => {})
      const text = await readFile(file, 'utf8')
      const again = await boot({ home, plugins })
      const of = async (url: string) => (await again.request('GET', url)).body
      const isMade = text.includes('7')
      const { max_concurrent_jobs: most } = (await of('/api/settings/automation')).config
      const [entry] = (await of('/api/settings/apply')).entries
      // The first start recorded that it found the file.
      const audited = (await of('/api/audit')).entries.filter((one: Reply) => one.action === 'config.changed')
      const found = { isMade: most === 7, isRecorded: entry?.status === 'applied', isAudited: audited.length === 2 }
      assert.equal(found, { isMade, isRecorded: isMade, isAudited: isMade }, `${left}: ${text}`)
      await again.close()
    }
  })

test('a change whose record cannot be written is not made', async () => {
  const daemon = await scene('{"limits":{}}')
  const { begin } = ApplyLog.prototype
  const change = (max_concurrent_jobs: number) =>
    daemon.request('PATCH', '/api/settings/automation', { config: { max_concurrent_jobs } })
  try {
    ApplyLog.prototype.begin = () => ({ id: 'apl_1', written: Promise.reject(new Error('the disk is away')) })
    assert.is((await change(7)).status, 500)
    assert.is(await daemon.text(), '{"limits":{}}')
    ApplyLog.prototype.begin = begin
    assert.is((await change(8)).status, 200)
    assert.is(JSON.parse(await daemon.text()).automation.max_concurrent_jobs, 8)
  } finally {
    ApplyLog.prototype.begin = begin
    await daemon.close()
  }
})

test('an update is not supported, and every interface gives the reason', async () => {
  const daemon = await scene()
  try {
    const state = (await daemon.request('GET', '/api/settings/update')).body
    assert.equal([state.supported, state.status, state.available], [false, 'unsupported', false])
    const applied = await daemon.request('POST', '/api/settings/update/apply', { target: 'runtime' })
    assert.equal([applied.status, applied.body.status], [200, 'blocked'])
    const canceled = await daemon.request('POST', '/api/settings/update/cancel')
    assert.equal([canceled.status, canceled.body.status], [200, 'unsupported'])
    for (const { message } of [applied.body, canceled.body]) assert.match(message, /does not update itself/)
    for (const section of ['memory', 'roles', 'attention', 'cmd-palette', 'shell']) {
      const { runtime } = (await daemon.request('GET', `/api/settings/${section}`)).body
      assert.is(runtime.status, 'unavailable', section)
    }
  } finally {
    await daemon.close()
  }
})

test.run()
