import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { dropInCommands } from '../../cli/daemon/drop-in-commands.js'
import { daemon, extensions, resources } from '../../plugins/index.js'
import { isActive, scene } from '../plugins/delivery/extensions/scene.js'

const MAIN = `import { definePlugin, ok, routeOf } from 'svc/plugin'
import { cli } from 'svc/kit'
import * as v from 'valibot'
const route = routeOf()
const say = { method: 'GET', summary: 'Say', replies: { 200: v.object({ a: v.string() }) }, handle: () => ok({ a: 'b' }) }
export default definePlugin({ name: 'acme.two', version: '1.0.0' }).surface({
  routes: [
    route({ ...say, path: '/api/ext/acme.two/right', with: [cli('acme right')] }),
    route({ ...say, path: '/api/ext/acme.two/wrong', with: [cli('acme wrong', { options: { nope: 'no' } })] }),
  ],
})
`

test('a command that does not fit its route is a fault of its extension; the other commands work', async () => {
  const manifest = 'name = "acme.two"\nversion = "1.0.0"\napiVersion = 2\nmain = "main.js"\n'
  const plugins = [daemon, resources, extensions, dropInCommands]
  const svc = await scene({ 'acme.two': { 'extension.toml': manifest, 'main.js': MAIN } }, { plugins })
  try {
    await svc.until('acme.two', isActive)
    const written = async () => JSON.parse(await readFile(path.join(svc.home, 'cache/commands.json'), 'utf8'))
    await svc.until('acme.two', async () => (await written().catch(() => undefined))?.routes.length > 0)
    assert.equal(
      (await written()).routes.map((route: { path: string }) => route.path),
      ['acme right'],
    )
    const { body } = await svc.request('GET', '/api/doctor')
    const fault = body.items.find(({ message }: { message: string }) => /is named nope/.test(message))
    assert.match(`${fault?.id} ${fault?.message}`, /acme\.two/)
  } finally {
    await svc.close()
  }
})

test.run()
