import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { startExtension } from '../../../../testing/index.js'

const MANIFEST = `name = "acme.wrap"
version = "1.0.0"
apiVersion = 1
main = "main.js"
replaces = "workspaces"
`

/** Starts an extension whose plugin has this surface. @returns why it does not run */
async function refusalOf(surface: string): Promise<string> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'svc-wrap-'))
  try {
    await mkdir(path.join(folder, 'acme.wrap'))
    await writeFile(path.join(folder, 'acme.wrap/extension.toml'), MANIFEST)
    await writeFile(
      path.join(folder, 'acme.wrap/main.js'),
      `import { workspaces } from 'svc/plugins'
const apply = async kernel => Object.assign(Object.create(await workspaces.apply(kernel)), { list: () => [] })
export default { ...workspaces, name: 'acme.wrap', version: '1.0.0', replaces: 'workspaces', apply, surface: ${surface} }
`,
    )
    const started = await startExtension(path.join(folder, 'acme.wrap')).catch((error: Error) => error)
    if (started instanceof Error) return started.message
    await started.close()
    return ''
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

test('a replacement that wraps the packaged plugin is refused, because its methods bypass the wrapper', async () => {
  const refused = /its surface is that of the plugin workspaces; a replacement declares its own routes.*taps hooks/
  assert.match(await refusalOf('workspaces.surface'), refused)
  assert.match(await refusalOf('{ ...workspaces.surface, commands: [] }'), refused)
  assert.match(await refusalOf('{ routes: workspaces.surface.routes.slice(1) }'), refused)
})

test.run()
