import { rm } from 'node:fs/promises'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { backup } from '../../../../plugins/index.js'
import { openWorld } from '../../../fixtures/session-world.js'
import type { Reply } from '../../../harness/kernel.js'
import { restoredOf } from '../../desk/backup/restored.js'

const question = `ask ${JSON.stringify({
  toolCall: { toolCallId: 'p1', title: 'rm', kind: 'execute', rawInput: { command: 'rm', args: ['x'] } },
  options: ['allow_once', 'reject_once'].map(kind => ({ optionId: kind, name: kind, kind })),
})}`

test('a restored home has no open questions or holders, and starts no turn before its confirmation', async () => {
  const world = await openWorld({ plugins: [backup] })
  let home: string | undefined
  try {
    await world.agent('asks', { permissions: 'approve-reads' })
    await world.agent('plain')
    const asking = await world.session('asks')
    const { at, id } = await world.session('plain')
    await world.prompt(at, 'say one')
    const held = await world.kernel.request('POST', `${at}/attach`, { attached_to: 'desk', ttl_seconds: 86_400 })
    assert.is(held.status, 200, JSON.stringify(held.body))
    await world.kernel.request('POST', `${asking.at}/prompt`, { text: question })
    await world.until(asking.at, event => event.type === 'permission' && event.content.status === 'pending')
    const questionsOf = async (kernel: typeof world.kernel): Promise<unknown[]> =>
      (await kernel.request('GET', '/api/inbox')).body.items.filter((item: Reply) => item.session_id === asking.id)
    assert.is((await questionsOf(world.kernel)).length, 1)
    home = await restoredOf({ home: world.home, request: world.kernel.request })
    const copy = await openWorld({ home, root: world.root, plugins: [backup] })
    try {
      const row = await copy.row(id)
      assert.equal([row.state, row.attached_to], ['stopped', undefined])
      assert.equal(await questionsOf(copy.kernel), [])
      const { state, stop_detail } = await copy.row(asking.id)
      assert.equal([state, stop_detail], ['stopped', 'session was active when the backup was made'])
      const refused = await copy.kernel.request('POST', `${at}/prompt`, { text: 'say two' })
      assert.equal([refused.status, refused.body.code], [503, 'home_held'])
      assert.is((await copy.kernel.request('POST', '/api/backups/confirm')).status, 200)
      await copy.prompt(at, 'say two')
    } finally {
      await copy.close()
    }
  } finally {
    await world.close()
    if (home !== undefined) await rm(home, { recursive: true, force: true })
  }
})

test.run()
