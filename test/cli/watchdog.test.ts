// proof, timeout: 80s: a thread that is really held, for some seconds
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { typescript } from '../harness/run-typescript.js'

const holder = fileURLToPath(new URL('../fixtures/watchdog-holder.ts', import.meta.url))

test('kernel work on behalf of an extension is attributed to it, also in optimized code', () => {
  const home = mkdtempSync(join(tmpdir(), 'svc-watchdog-'))
  try {
    const { stdout, stderr } = spawnSync(process.execPath, [...typescript, holder, home], {
      encoding: 'utf8',
      timeout: 220_000,
      // All sources of the tests are more than the memory of that thread.
      env: { ...process.env, SVC_TEST_BUNDLE: undefined },
    })
    assert.match(stdout, /^acme\.loud: (spin|onBehalfOf|a function)/, stderr)
  } finally {
    rmSync(home, { recursive: true, force: true })
  }
})

test.run()
