import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { hasFailed, scene } from './scene.js'

/** An extension of apiVersion 2 with this on its surface. */
const files = (surface: string) => ({
  'extension.toml': 'name = "acme.form"\nversion = "1.0.0"\napiVersion = 2\nmain = "main.js"\n',
  'main.js': `import { definePlugin, ok, routeOf } from 'svc/plugin'
import { cli, runsCode } from 'svc/kit'
import * as v from 'valibot'
const route = routeOf()
const say = { method: 'GET', path: '/api/ext/acme.form/say', summary: 'Say', replies: { 200: v.object({ a: v.string() }) }, handle: () => ok({ a: 'b' }) }
export default definePlugin({ name: 'acme.form', version: '1.0.0' }).surface({ ${surface} })
`,
})

const CASES: readonly (readonly [string, RegExp])[] = [
  ['route: [route(say)]', /its surface has the unknown member route; did you mean routes\?/],
  [
    "routes: [route({ ...say, area: 'A' })]",
    /GET \/api\/ext\/acme\.form\/say has area, a member of apiVersion 1; write with/,
  ],
  [
    "routes: [route({ ...say, cli: { path: 'acme form' } })]",
    /has cli, a member of apiVersion 1; write with: \[cli\('…'\)\]/,
  ],
  ["routes: [route({ ...say, with: ['cli'] })]", /has an entry of `with` that is not an annotation/],
  ["routes: [route({ ...say, with: [cli('acme form'), cli('acme two')] })]", /has the annotation cli@1 2 times/],
]

for (const [surface, words] of CASES)
  test(`an extension of apiVersion 2 with ${surface} does not load, and gets the reason`, async () => {
    const svc = await scene({ 'acme.form': files(surface) })
    try {
      const found = await svc.until('acme.form', hasFailed)
      assert.match(found.last_error, words)
    } finally {
      await svc.close()
    }
  })

test.run()
