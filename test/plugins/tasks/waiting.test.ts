import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { StartedDaemon } from '../../../testing/daemon.js'

test('tasks that wait for a person stand in the inbox until he has answered', async () => {
  const daemon = await StartedDaemon.start()
  try {
    const items = async () => (await daemon.request('GET', '/api/inbox')).body as { items: Record<string, string>[] }
    const body = { title: 'Release', scope: 'global', approval_policy: 'manual' }
    const { task } = (await daemon.request('POST', '/api/tasks', body)).body as { task: { id: string } }
    const [item, ...others] = (await items()).items
    assert.equal(others, [])
    const { created_at: at, ...rest } = item ?? {}
    assert.equal(rest, { task_id: task.id, kind: 'approval', title: 'Release', command: `svc task approve ${task.id}` })
    assert.ok(Date.parse(at ?? '') > 0)
    const shown = await daemon.cli('inbox')
    assert.match(shown.stdout, /approval/)
    assert.match(shown.stdout, new RegExp(`svc task approve ${task.id}`))
    assert.is((await daemon.cli('task', 'approve', task.id)).code, 0)
    assert.equal((await items()).items, [])
  } finally {
    await daemon.stop()
  }
})

test.run()
