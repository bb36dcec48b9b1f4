import { rm } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { definePlugin, type PluginKernel } from '../../../../kernel/plugin.js'
import * as tables from '../../../../plugins/delivery/extensions/tables.js'
import { installMigrations, installs, type Provenance } from '../../../../plugins/delivery/installer/provenance.js'
import { sourceTable } from '../../../../plugins/delivery/subprocess-host/snapshots.js'
import { daemon, extensions, resources } from '../../../../plugins/index.js'
import { boot, temporaryFolder } from '../../../harness/kernel.js'
import { files } from './scene.js'
import { manifest } from './tarball.js'

const { migrations, startedMigration, startedVersionMigration, stateMigration } = tables
let own: PluginKernel | undefined
/** The plugin as it was when it also installed extensions and ran their processes. */
const former = definePlugin({
  name: 'extensions',
  version: '0.1.0',
  service: async () =>
    class {
      constructor(kernel: PluginKernel) {
        own = kernel
      }
    },
}).surface({
  tables: [...[...migrations, ...installMigrations], ...[startedMigration, stateMigration, startedVersionMigration]],
  inherits: [sourceTable],
})

test('a home of the time when extensions were one plugin is read, and goes back', async () => {
  const home = await temporaryFolder('former')
  const folder = await files(path.join(home, 'extensions', 'demo'), { 'extension.toml': manifest() })
  const before = await boot({ home, plugins: [daemon, resources, former] })
  const provenance: Provenance = {
    ...({ name: 'demo', version: '1.0.0', tier: 'user', treeDigest: 'ab', decision: 'local' } as const),
    ...{ checksumVerified: false, allowUnverified: false, permissions: [], installedAt: 0, installedBy: 'person' },
    source: { kind: 'local_path', path: folder, form: 'folder' },
  }
  const rows = () => installs.all(own?.db as PluginKernel['db'])
  await own?.db.tx(t => installs.replace(t, { name: 'demo', provenance }))
  await before.close()

  const now = await boot({ home, plugins: [daemon, resources, extensions] })
  const { status, body } = await now.request('GET', '/api/extensions/demo/provenance')
  assert.equal(
    [status, body.provenance?.installed_by],
    [200, 'person'],
    JSON.stringify([body, now.kernel.host.plugins().filter(({ state }) => state.status !== 'active')]),
  )
  assert.is((await now.request('DELETE', '/api/extensions/demo')).status, 200)
  await now.close()

  const back = await boot({ home, plugins: [daemon, resources, former] })
  assert.equal(rows(), [], 'the removal reached the same table')
  await back.close()
  await rm(home, { recursive: true })
})

test.run()
