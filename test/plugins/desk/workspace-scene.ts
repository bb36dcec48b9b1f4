import { mkdir, realpath, rm } from 'node:fs/promises'
import path from 'node:path'
import * as assert from 'uvu/assert'
import { definePlugin, type Plugin, type PluginKernel, surfaceOf } from '../../../kernel/plugin.js'
import daemon from '../../../plugins/desk/daemon/index.js'
import {
  type DetailMember,
  WorkspaceDetailMembers,
  WorkspaceErrors,
  Workspaces,
  type WorkspacesApi,
} from '../../../plugins/desk/workspaces/api.js'
import workspaces from '../../../plugins/desk/workspaces/index.js'
import { Events } from '../../../plugins/platform/events/api.js'
import resources from '../../../plugins/platform/resources/index.js'
import { type BootOptions, boot, type TestKernel, temporaryFolder } from '../../harness/kernel.js'

/** A plugin above workspaces: contributes to the detail and may refuse a delete. */
export function tenant(members: DetailMember[] = [], busy: string[] = []) {
  const instance: { kernel?: PluginKernel<{ events: typeof Events; workspaces: typeof Workspaces }> } = {}
  const { contribute, tap } = surfaceOf<object>()
  const plugin = definePlugin({
    name: 'tenant',
    version: '1.0.0',
    requires: { events: Events, workspaces: Workspaces },
    service: async () =>
      class {
        constructor(kernel: PluginKernel<{ events: typeof Events; workspaces: typeof Workspaces }>) {
          instance.kernel = kernel
        }
      },
  }).surface({
    registries: [contribute(WorkspaceDetailMembers, () => members)],
    taps: [
      tap(
        Workspaces,
        workspaces => workspaces.deleting,
        () => (_, workspace) =>
          busy.includes(workspace.name) ? WorkspaceErrors.workspace_in_use('somebody is at home') : undefined,
      ),
    ],
  })
  return { plugin, kernel: () => instance.kernel as NonNullable<typeof instance.kernel> }
}

/** Plugins that take the place of the one under test. */
export const replacements: Plugin[] = []

/** A kernel with a folder of its own for roots; both go at the end. */
export async function scene(options: Partial<BootOptions> = {}, more: Parameters<typeof tenant> = []) {
  const folder = await realpath(await temporaryFolder('roots'))
  const { plugin, kernel } = tenant(...more)
  const host = await boot({
    plugins: [daemon, resources, workspaces, plugin, ...replacements],
    replace: replacements.map(({ name }) => name),
    ...options,
  })
  const root = async (name: string) => {
    await mkdir(path.join(folder, name), { recursive: true })
    return path.join(folder, name)
  }
  const api = (): WorkspacesApi => kernel().needs.workspaces
  const end = async () => {
    await host.close()
    await rm(folder, { recursive: true, force: true })
  }
  return { host, folder, root, api, inside: kernel(), end }
}

export async function add(host: TestKernel, root_dir: string, more: object = {}) {
  const { status, body } = await host.request('POST', '/api/workspaces', { root_dir, ...more })
  assert.is(status, 201, JSON.stringify(body))
  return body.workspace
}

export async function outcome(host: TestKernel, method: string, url: string, sent?: unknown) {
  const reply = await host.request(method, url, sent)
  return `${reply.status} ${reply.body?.code ?? ''}`.trim()
}

export const resolve = (host: TestKernel, at: string) => host.request('POST', '/api/workspaces/resolve', { path: at })
export const encoded = (at: string) => `/api/workspaces/${encodeURIComponent(at)}`
export const names = async (host: TestKernel) =>
  (await host.request('GET', '/api/workspaces')).body.workspaces.map((workspace: { name: string }) => workspace.name)
