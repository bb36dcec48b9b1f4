import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { isActive, scene } from './scene.js'

/** An extension whose second version has a table that the first cannot write. */
function keeper(version: string, tables: readonly object[]): Record<string, string> {
  return {
    'extension.toml': `name = "acme.keeper"\nversion = "${version}"\napiVersion = 2\nmain = "main.js"\n`,
    'main.js': `import { definePlugin } from 'svc/plugin'
export default definePlugin({ name: 'acme.keeper', version: '${version}' }).surface({ tables: ${JSON.stringify(tables)} })
`,
  }
}

const first = { id: '001', sql: 'CREATE TABLE acme_keeper_thing (id TEXT PRIMARY KEY, name TEXT NOT NULL) STRICT' }
const unique = { id: '002', sql: 'CREATE UNIQUE INDEX acme_keeper_name ON acme_keeper_thing (name)' }

test('a previous version of an extension that cannot read its tables names the last version', async () => {
  const svc = await scene({ 'acme.keeper': keeper('1.0.0', [first]) })
  try {
    await svc.until('acme.keeper', isActive)
    await svc.drop('acme.keeper', keeper('2.0.0', [first, unique]))
    await svc.until('acme.keeper', found => isActive(found) && found?.version === '2.0.0')
    await svc.drop('acme.keeper', keeper('1.0.0', [first]))
    const { last_error: error } = (await svc.until('acme.keeper', found => found?.last_error !== undefined)) ?? {}
    assert.match(error, /the database has migration 002 of acme\.keeper/)
    assert.match(error, /; version 2\.0\.0 of acme\.keeper ran last$/)
  } finally {
    await svc.close()
  }
})

test.run()
