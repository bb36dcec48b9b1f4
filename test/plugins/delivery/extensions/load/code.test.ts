import { existsSync } from 'node:fs'
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { CodeCache } from '../../../../../plugins/delivery/extensions/load/code.js'
import { temporaryFolder } from '../../../../harness/kernel.js'

test('shutdown waits for pending copies and refuses new ones', async () => {
  const home = await temporaryFolder('copies')
  const [root, cache] = [path.join(home, 'acme.a'), path.join(home, 'cache')]
  await mkdir(root)
  for (let n = 0; n < 50; n++) await writeFile(path.join(root, `part-${n}.js`), `export const n = ${n}\n`)
  const code = new CodeCache(cache)
  const first = code.copy('acme.a', root, 'first')
  await code.end()
  const { folder } = await first
  assert.ok(existsSync(path.join(folder, 'part-49.js')))
  await rm(cache, { recursive: true })
  const refused = await code.copy('acme.a', root, 'second').catch(error => error)
  assert.is(refused.code, 'shutting_down')
  await code.sweep()
  assert.equal(await readdir(home), ['acme.a'], 'nothing is written behind the end')
  await rm(home, { recursive: true })
})

test.run()
