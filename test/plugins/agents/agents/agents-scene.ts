import { mkdir, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import * as assert from 'uvu/assert'
import agents from '../../../../plugins/agents/agents/index.js'
import providers from '../../../../plugins/agents/providers/index.js'
import daemon from '../../../../plugins/desk/daemon/index.js'
import workspaces from '../../../../plugins/desk/workspaces/index.js'
import resources from '../../../../plugins/platform/resources/index.js'
import { type BootOptions, boot, type TestKernel, temporaryFolder } from '../../../harness/kernel.js'

/** A daemon with agents and one workspace `w`; folders go at the end. */
export interface Scene extends TestKernel {
  readonly root: string
  readonly workspaceId: string
  /** Folders of definitions. */
  readonly own: string
  readonly homeAgents: string
  write(folder: string, name: string, lines?: readonly string[], prompt?: string): Promise<string>
  /** Status, and code of an error. */
  outcome(method: string, url: string, body?: unknown): Promise<string>
  end(): Promise<void>
}

/** Without which there are no agents. */
export const PLUGINS = [daemon, resources, workspaces, providers, agents]

export async function scene(options: Partial<BootOptions> = {}): Promise<Scene> {
  const home = options.home ?? (await temporaryFolder('agents-home'))
  const root = await temporaryFolder('agents-root')
  const plugins = [...PLUGINS, ...(options.plugins ?? [])]
  const host = await boot({ ...options, home, plugins })
  const made = await host.request('POST', '/api/workspaces', { root_dir: root, name: 'w' })
  assert.is(made.status, 201)
  return {
    ...host,
    root,
    workspaceId: made.body.workspace.id,
    own: path.join(root, '.svc', 'agents'),
    homeAgents: path.join(home, 'agents'),
    async write(folder, name, lines = [], prompt = 'Do it.') {
      const file = path.join(folder, name, 'AGENT.md')
      await mkdir(path.dirname(file), { recursive: true })
      await writeFile(file, ['---', `name: ${name}`, ...lines, '---', prompt].join('\n'))
      return file
    },
    async outcome(method, url, body) {
      const reply = await host.request(method, url, body)
      return `${reply.status} ${reply.body?.code ?? ''}`.trim()
    },
    async end() {
      await host.close()
      if (options.home === undefined) await rm(home, { recursive: true, force: true })
      await rm(root, { recursive: true, force: true })
    },
  }
}
