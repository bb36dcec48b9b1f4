import { spawnSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { test } from 'uvu'
import * as assert from 'uvu/assert'

const folder = fileURLToPath(new URL('../../../dist/extensions', import.meta.url))

for (const name of readdirSync(folder))
  test(`the start of ${name} uses nothing that Node warns of`, () => {
    const args = ['--pending-deprecation', `${folder}/${name}/main.cjs`]
    const { stderr } = spawnSync(process.execPath, args, { input: '', encoding: 'utf8', timeout: 30_000 })
    assert.not.match(stderr, /Warning:/)
  })

test.run()
