import http from 'node:http'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { ask } from '../../../kernel/http/doors.js'
import { isActive, scene, textExtension } from './scene.js'

const name = 'acme.guard'
/** An extension whose guards throw once its code runs. */
const throwing = (hooks: string) => {
  const files = textExtension(name, 'x')
  return { ...files, 'main.js': String(files['main.js']).replace('routes: [', `hooks: ${hooks},\n  routes: [`) }
}

const guards = {
  admit: '{ admit: () => { throw new Error("guarded") } }',
  authenticate: '{ authenticate: () => { throw new Error("guarded") } }',
  write: '{ write: { "*": () => { throw new Error("guarded") } } }',
  written: '{ written: () => { throw new Error("guarded") } }',
  scope: '{ scope: () => { throw new Error("guarded") } }',
}

for (const [hook, hooks] of Object.entries(guards))
  for (const end of ['disable', 'remove'] as const)
    test(`an extension with a failing \`${hook}\` can be shown and ${end}d over the Unix socket`, async () => {
      const svc = await scene({ [name]: throwing(hooks) }, { listen: ['socket'] })
      const where = { socketPath: path.join(svc.home, 'daemon.sock'), agent: new http.Agent() }
      await svc.kernel.host.plugins()
      for (;;) {
        const { body } = await ask(where, `/api/extensions/${name}`)
        if (isActive(body.extension)) break
        await new Promise(resolve => setTimeout(resolve, 20))
      }
      for (const url of [
        '/api/status',
        '/api/doctor',
        '/api/extensions',
        '/api/plugins',
        `/api/extensions/${name}/logs`,
      ])
        assert.is((await ask(where, url)).status, 200, url)
      const [method, url] = end === 'disable' ? ['POST', `${name}/disable`] : ['DELETE', `${name}?purge=true`]
      const { status, text } = await ask(where, `/api/extensions/${url}`, { method })
      assert.is(status, 200, text)
      assert.not(svc.kernel.host.plugins().some(plugin => plugin.name === name))
      await svc.close()
    })

test.run()
