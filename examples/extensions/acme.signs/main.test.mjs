import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { startExtension } from 'svc/testing'

let extension
let file
before(async () => {
  extension = await startExtension(import.meta.dirname)
  file = path.join(extension.home, 'config.json')
})
after(() => extension.close())

const signs = async () => (await extension.request('GET', '/api/ext/acme.signs/signs')).body
const put = (name, body) => extension.request('PUT', `/api/ext/acme.signs/signs/${name}`, body)

const WRITTEN = `// by hand
{
  "plugins": {
    "acme.signs": {
      "signs": {
        "wall": { "text": "No ball games" } // the neighbours asked
      }
    }
  }
}
`

test('a sign is written where config.json has signs, its comments stay, and it holds at once', async () => {
  await writeFile(file, WRITTEN)
  assert.deepEqual((await put('gate', { text: 'Mind the dog' })).body, { written: true, apply: 'live' })
  assert.equal(
    await readFile(file, 'utf8'),
    WRITTEN.replace(
      '} // the neighbours asked',
      '}, // the neighbours asked\n        "gate": {\n          "text": "Mind the dog"\n        }',
    ),
  )
  const listed = await signs()
  assert.deepEqual(
    listed.signs.map(({ name, from }) => `${name} of ${from}`),
    ['door of default', 'wall of file', 'gate of file'],
  )
  assert.equal(listed.changes > 0, true)
})

test('a change for a configuration that is another one by now is refused, and so is what is no sign', async () => {
  const { hash } = await signs()
  assert.equal((await put('gate', { text: 'Mind the cat', hash })).status, 200)
  const late = await put('gate', { text: 'Mind the dog', hash })
  assert.deepEqual([late.status, late.body.code], [409, 'config_changed'])
  assert.match(await readFile(file, 'utf8'), /Mind the cat/)
  assert.deepEqual((await put('gate', { text: 'Mind the cat' })).body, { written: false, apply: 'none' })
})
