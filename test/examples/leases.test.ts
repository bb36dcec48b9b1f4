import { execFile } from 'node:child_process'
import path from 'node:path'
import { promisify } from 'node:util'
import { test } from 'uvu'
import * as assert from 'uvu/assert'

const file = path.join(import.meta.dirname, '../../examples/extensions/acme.leases/main.test.mjs')

test('the tests of acme.leases pass as run by their author', async () => {
  const { stdout } = await promisify(execFile)(process.execPath, ['--test', '--test-reporter=tap', file]).catch(
    error => error,
  )
  assert.match(stdout, /^# fail 0$/m, stdout)
  assert.match(stdout, /^# pass [1-9]/m, stdout)
})

test.run()
