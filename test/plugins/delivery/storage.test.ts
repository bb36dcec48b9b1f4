import { existsSync, statSync } from 'node:fs'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { daemon, extensions, resources, storage, workspaces } from '../../../plugins/index.js'
import { isActive, scene } from './extensions/scene.js'

const main = (name: string, more = '') => `import { definePlugin, ok, routeOf } from 'svc/plugin'
import { Storage } from 'svc/plugins/storage'
import * as v from 'valibot'
const route = routeOf()
const at = '/api/ext/${name}'
const body = v.object({ key: v.optional(v.any()), value: v.optional(v.any()), how: v.optional(v.string()) })
export default definePlugin({
  name: '${name}', version: '1.0.0', ${more} requires: { storage: Storage },
}).surface({
  routes: [
    route({
      method: 'POST', path: at + '/{verb}', summary: 'Keep', body, replies: { 200: v.any() },
      handle: async ({ needs: { storage } }, { params: { verb }, body: { key, value, how } }) => {
        const given = { circle: () => { const a = {}; a.a = a; return a }, function: () => () => {} }[how]?.() ?? value
        return ok({ result: (await storage[verb](...(verb === 'put' ? [key, given] : key === undefined ? [] : [key]))) ?? null })
      },
    }),
  ],
})
`
const files = (name: string, more = '', manifest = '') => ({
  'extension.toml': `name = "${name}"\nversion = "1.0.0"\napiVersion = 2\nmain = "main.js"\n${manifest}`,
  'main.js': main(name, more),
})
const plugins = [daemon, resources, extensions, storage, workspaces]

test('plugin code keeps its values and files across a reload; purging removes them', async () => {
  const svc = await scene({ 'acme.one': files('acme.one'), 'acme.two': files('acme.two') }, { plugins })
  try {
    for (const name of ['acme.one', 'acme.two']) await svc.until(name, isActive)
    const call = async (name: string, verb: string, body: object = {}) => {
      const { body: reply } = await svc.request('POST', `/api/ext/${name}/${verb}`, body)
      return reply.code ?? reply.result
    }
    await call('acme.one', 'put', { key: 'cursor', value: { at: 7 } })
    await call('acme.one', 'put', { key: 'room/1', value: 'a' })
    assert.equal(await call('acme.one', 'get', { key: 'cursor' }), { at: 7 })
    assert.is(await call('acme.two', 'get', { key: 'cursor' }), null, 'each has its own')
    const listed = await call('acme.one', 'list', { key: { prefix: 'room/' } })
    assert.equal([listed.entries.map(({ key }: { key: string }) => key), listed.has_more], [['room/1'], false])
    assert.is(await call('acme.one', 'delete', { key: 'room/1' }), true)
    assert.is(await call('acme.one', 'delete', { key: 'room/1' }), false)
    const folder = await call('acme.one', 'folder')
    assert.is(folder, path.join(svc.home, 'extension-data/acme.one'))
    assert.is(statSync(folder).mode & 0o777, 0o700)

    for (const [what, body, code] of [
      ['an empty key', { key: '', value: 1 }, 'extension_state_invalid'],
      ['a key that is no text', { key: 5, value: 1 }, 'extension_state_invalid'],
      ['nothing', { key: 'k', how: 'function' }, 'extension_state_invalid'],
      ['a circle', { key: 'k', how: 'circle' }, 'extension_state_invalid'],
      ['too much', { key: 'k', value: 'x'.repeat(64 * 1024) }, 'extension_state_too_large'],
    ] as const)
      assert.is(await call('acme.one', 'put', body), code, what)
    assert.is(await call('acme.one', 'list', { key: { limit: 1001 } }), 'extension_state_invalid')

    assert.is((await svc.request('POST', '/api/extensions/acme.one/reload')).status, 200)
    assert.equal(await call('acme.one', 'get', { key: 'cursor' }), { at: 7 })
    assert.is((await svc.request('DELETE', '/api/extensions/acme.one?purge=true')).status, 200)
    assert.is(existsSync(folder), false)
    await svc.drop('acme.one', files('acme.one'), true)
    await svc.until('acme.one', isActive)
    assert.is(await call('acme.one', 'get', { key: 'cursor' }), null)
  } finally {
    await svc.close()
  }
})

test.run()
