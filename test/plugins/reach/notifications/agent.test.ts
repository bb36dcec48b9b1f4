import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { notifications } from '../../../../plugins/index.js'
import { openScene as scene } from '../../work/tools/scene.js'

test('an agent notifies users with its tool, and has no access to presets and attention', async () => {
  const s = await scene({ plugins: [notifications] })
  try {
    const ada = await s.agent('ada', { permissions: 'approve-all' })
    const called = await ada.call('service__notify', { title: 'The docs are built' })
    assert.is(called.status, 200, JSON.stringify(called.body))
    const { items } = (await s.operator('GET', '/api/notifications/attention')).body
    const notice = items.find(({ kind }: { kind: string }) => kind === 'notice')
    assert.equal([notice.title, notice.agent_name, notice.session_id], ['The docs are built', 'ada', ada.id])
    for (const [method, url, body] of [
      ['GET', '/api/notifications/attention'],
      ['GET', '/api/notifications/attention?profile=other'],
      ['POST', '/api/notifications/attention/acknowledge', { snapshot: 'x' }],
      ['GET', '/api/notifications/presets'],
      ['POST', '/api/notifications/presets', { name: 'mine', events: [], targets: [] }],
      ['DELETE', '/api/notifications/presets/task_terminal'],
      ['POST', '/api/tasks/task_1/notifications/bridges', {}],
    ] as const)
      assert.equal([url, (await ada.ask(method, url, body)).status], [url, 403])
  } finally {
    await s.close()
  }
})

test.run()
