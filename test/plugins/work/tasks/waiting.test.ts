import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { StartedDaemon } from '../../../../testing/daemon.js'

test('tasks that need a decision stay in the inbox until it is made', async () => {
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

test('a board without open runs shows ready tasks and how to start one', async () => {
  const daemon = await StartedDaemon.start()
  try {
    await daemon.request('POST', '/api/tasks', { title: 'Release', scope: 'global' })
    const board = (await daemon.cli('task', 'board')).stdout
    assert.match(board, /Ready tasks +1\n/)
    assert.match(board, 'svc task start <id>')
  } finally {
    await daemon.stop()
  }
})

test('a suggestion stays in the inbox until it is answered, and --quiet prints its id', async () => {
  const daemon = await StartedDaemon.start()
  try {
    const root = mkdtempSync(path.join(tmpdir(), 'suggested-'))
    const added = await daemon.request('POST', '/api/workspaces', { root_dir: root, name: 'app' })
    const { id } = (added.body as { workspace: { id: string } }).workspace
    const url = `/api/workspaces/${id}/automation/suggestions`
    const job = { name: 'daily', agent_name: 'report', prompt: 'Go.', schedule: { mode: 'every', interval: '1h' } }
    const made = (await daemon.request('POST', url, { job })).body as { suggestion: { id: string } }
    const shown = await daemon.cli('inbox')
    assert.match(shown.stdout, `svc automation suggestions accept ${made.suggestion.id}`)
    const ids = await daemon.cli('automation', 'suggestions', 'list', '--workspace', id, '--quiet')
    assert.is(ids.stdout, `${made.suggestion.id}\n`)
    assert.is((await daemon.request('POST', `${url}/${made.suggestion.id}/dismiss`)).status, 200)
    assert.match((await daemon.cli('inbox')).stdout, 'nothing waits for you')
    rmSync(root, { recursive: true })
  } finally {
    await daemon.stop()
  }
})

test.run()
