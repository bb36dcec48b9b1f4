// timeout: 120s
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { gunzipSync } from 'node:zlib'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { inTree } from '../../plugins/index.js'
import { VirtualClock } from '../../testing/virtual-clock.js'
import { boot, temporaryFolder, whileTimePasses } from '../harness/kernel.js'

/** Shortly after that home was left: none of its jobs is due. */
const LATER = Date.parse('2026-11-22T13:24:00Z')

/** What a daemon of the version before left behind, and what it answered when it was asked for all of it. */
interface Before {
  /** Base64 by path. */
  readonly files: Readonly<Record<string, string>>
  readonly replies: Readonly<Record<string, unknown>>
}

async function before(): Promise<Before> {
  const file = new URL('../fixtures/home-before.json.gz', import.meta.url)
  return JSON.parse(gunzipSync(await readFile(fileURLToPath(file))).toString())
}

/** As much of a reply as the version before said; what was added since is left out. */
function asBefore(reply: unknown, said: unknown): unknown {
  if (Array.isArray(reply) && Array.isArray(said)) return reply.map((item, i) => asBefore(item, said[i]))
  if (typeof reply !== 'object' || reply === null || typeof said !== 'object' || said === null) return reply
  const members = Object.entries(said).map(([name, value]) => [
    name,
    asBefore((reply as Record<string, unknown>)[name], value),
  ])
  return Object.fromEntries(members)
}

test('a home of the previous version starts with all its data, also after a second start', async () => {
  const { files, replies } = await before()
  const home = await temporaryFolder('before')
  for (const [name, bytes] of Object.entries(files)) {
    await mkdir(path.dirname(path.join(home, name)), { recursive: true, mode: 0o700 })
    await writeFile(path.join(home, name), Buffer.from(bytes, 'base64'), { mode: 0o600 })
  }
  assert.ok(Object.keys(replies).length > 6, 'there is something to look for')
  for (let start = 0; start < 2; start++) {
    const clock = new VirtualClock(LATER)
    const host = await whileTimePasses(clock, boot({ home, plugins: inTree, clock }))
    for (const [url, said] of Object.entries(replies)) {
      const { status, body } = await whileTimePasses(clock, host.request('GET', url))
      assert.is(status, 200, url)
      assert.equal(asBefore(body, said), said, url)
    }
    const { body: identity } = await whileTimePasses(clock, host.request('GET', '/api/plugins'))
    const failed = identity.plugins.filter((plugin: { status: string }) => plugin.status === 'failed')
    assert.equal(failed, [])
    await whileTimePasses(clock, host.close())
  }
  await rm(home, { recursive: true })
})

test.run()
