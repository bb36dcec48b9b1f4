// proof, timeout: 120s: runs of the runner itself
import { spawnSync } from 'node:child_process'
import { rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { judgeReplies } from './judge-replies.js'
import { typescript } from './run-typescript.js'

const pathOf = (name: string) => fileURLToPath(new URL(name, import.meta.url))

for (const door of ['inject', 'socket', 'tcp'])
  test(`a reply that violates the contract is found through ${door}`, () => {
    const file = join(tmpdir(), `svc-watch-${process.pid}-${door}`)
    const args = [...typescript, '--import', pathOf('watch-replies.mjs'), pathOf('../fixtures/wrong-replies.ts'), door]
    const { status, stderr } = spawnSync(process.execPath, args, {
      env: { ...process.env, SVC_TEST_REPLIES: file },
      encoding: 'utf8',
    })
    try {
      assert.is(status, 0, stderr)
      assert.ok(judgeReplies(file).some(line => line.startsWith('GET /api/agents 200: /agents: must be array')))
    } finally {
      rmSync(file, { force: true })
    }
  })

test('replies within or outside the contract and a truncated line are no faults', () => {
  const file = join(tmpdir(), `svc-watch-${process.pid}`)
  const lines = [
    { method: 'GET', path: '/api/agents', status: 404, text: '{"error":"none","code":"x"}' },
    { method: 'GET', path: '/api/nowhere', status: 200, text: '{}' },
  ].map(reply => JSON.stringify(reply))
  writeFileSync(file, `${lines.join('\n')}\n{"method":"GET","pa`)
  try {
    assert.equal(judgeReplies(file), [])
  } finally {
    rmSync(file)
  }
})

test.run()
