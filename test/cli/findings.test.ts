import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { Output } from '../../cli/show/output.js'
import { noteFindings } from '../../cli/tasks/findings.js'

const items = [
  {
    id: 'trigger:trg_1:secret',
    severity: 'warning',
    message: 'no secret',
    suggested_command: 'svc vault put vault:a/b',
  },
  {
    id: 'trigger:trg_12:secret',
    severity: 'warning',
    message: 'of another',
    suggested_command: 'svc vault put vault:a/bc',
  },
  { id: 'notifications.presets.p', severity: 'info', message: 'fine' },
  { id: 'notifications.presets.p', severity: 'warning', message: 'no such event' },
]

async function noted(path: string, about: Parameters<typeof noteFindings>[1], { fails = false, quiet = false } = {}) {
  const asked: string[] = []
  let text = ''
  const sink = {
    write(some: string) {
      text += some
    },
  }
  const client = {
    request: async (_: string, url: string) => {
      asked.push(url)
      if (fails) throw new Error('unreachable')
      return { items }
    },
  }
  const out = new Output({ stdout: { write: () => assert.unreachable() }, stderr: sink, env: {} }, 'json', quiet)
  await noteFindings(path, about, { client, out })
  return { asked, text }
}

test('what doctor finds about the outcome of a command is noted on standard error', async () => {
  const args = { ref: 'vault:a/b', name: 'p' }
  assert.equal(await noted('automation triggers create', { reply: { trigger: { id: 'trg_1' } }, args: {} }), {
    asked: ['/api/doctor?only=automation'],
    text: 'note: no secret; try: svc vault put vault:a/b\n',
  })
  assert.is((await noted('vault delete', { args })).text, 'note: no secret; try: svc vault put vault:a/b\n')
  assert.is((await noted('notifications preset create', { args })).text, 'note: no such event\n')
})

test('other commands do not ask doctor, nor do quiet ones, and a failure of doctor is none of the command', async () => {
  const args = { ref: 'vault:a/b' }
  assert.equal(await noted('vault put', { args }), { asked: [], text: '' })
  assert.equal(await noted('vault delete', { args }, { quiet: true }), { asked: [], text: '' })
  assert.is((await noted('vault delete', { args }, { fails: true })).text, '')
})

test.run()
