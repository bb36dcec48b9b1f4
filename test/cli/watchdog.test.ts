// proof, timeout: 120s: a thread that is really held, for some seconds
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { typescript } from '../harness/run-typescript.js'

const holder = fileURLToPath(new URL('../fixtures/watchdog-holder.ts', import.meta.url))

/** What the holder prints that blocks its thread in this way, or sleeps. */
function heldBy(how: string): { readonly stdout: string; readonly stderr: string } {
  const home = mkdtempSync(join(tmpdir(), 'svc-watchdog-'))
  try {
    return spawnSync(process.execPath, [...typescript, holder, home, how], {
      encoding: 'utf8',
      timeout: 220_000,
      // All sources of the tests are more than the memory of that thread.
      env: { ...process.env, SVC_TEST_BUNDLE: undefined },
    })
  } finally {
    rmSync(home, { recursive: true, force: true })
  }
}

test('kernel work on behalf of an extension is attributed to it, also in optimized code', () => {
  const { stdout, stderr } = heldBy('spin')
  assert.match(stdout, /^acme\.loud: (spin|onBehalfOf|a function)/, stderr)
})

test('a thread blocked in a system call, which takes no processor time, is noticed', () => {
  const { stdout, stderr } = heldBy('wait')
  assert.match(stdout, /^acme\.loud: (wait|onBehalfOf|a function)|^unknown: a call that does not return/, stderr)
})

test('a thread that slept and is blocked by a child process, which has an event loop of its own, is noticed', () => {
  const { stdout, stderr } = heldBy('child')
  assert.match(stdout, /^acme\.loud: |^unknown: a call that does not return/, stderr)
})

for (const [how, thread] of [
  ['sleep', 'a sleeping thread'],
  ['doze', 'a thread that wakes by itself and sleeps again'],
] as const) {
  test(`${thread} is not asked for it`, () => {
    const { stdout, stderr } = heldBy(how)
    assert.match(stdout, 'the sleeping thread sleeps', stderr)
  })
}

test.run()
