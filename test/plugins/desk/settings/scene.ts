import { mkdir, readFile, realpath, writeFile } from 'node:fs/promises'
import path from 'node:path'
import type { Plugin } from '../../../../kernel/plugin.js'
import { inTree } from '../../../../plugins/index.js'
import { boot, type TestKernel, temporaryFolder } from '../../../harness/kernel.js'

export interface Scene extends TestKernel {
  /** The text of config.json; empty when there is none. */
  text(): Promise<string>
  save(text: string): Promise<void>
  /** Registers a new folder as a workspace. */
  workspace(files?: Readonly<Record<string, string>>): Promise<{ readonly id: string; readonly root: string }>
}

/** All plugins on a home with this config.json. */
export async function scene(config = '', { home, plugins = [] }: { home?: string; plugins?: readonly Plugin[] } = {}) {
  const at = home ?? (await temporaryFolder('home'))
  const file = path.join(at, 'config.json')
  if (config !== '') await writeFile(file, config)
  const kernel = await boot({ home: at, plugins: [...inTree, ...plugins] })
  return {
    ...kernel,
    text: () => readFile(file, 'utf8').catch(() => ''),
    save: (text: string) => writeFile(file, text),
    async workspace(files: Readonly<Record<string, string>> = {}) {
      const root = await realpath(await temporaryFolder('root'))
      for (const [name, text] of Object.entries(files)) {
        await mkdir(path.dirname(path.join(root, name)), { recursive: true })
        await writeFile(path.join(root, name), text)
      }
      const { body } = await kernel.request('POST', '/api/workspaces/resolve', { path: root })
      return { id: body.workspace.id as string, root }
    },
  } satisfies Scene
}
