import { mkdir, realpath, rm } from 'node:fs/promises'
import path from 'node:path'
import daemon from '../../../../plugins/desk/daemon/index.js'
import { WindowManager } from '../../../../plugins/desk/window-manager/api.js'
import windowManager from '../../../../plugins/desk/window-manager/index.js'
import workspaces from '../../../../plugins/desk/workspaces/index.js'
import { Events } from '../../../../plugins/platform/events/api.js'
import resources from '../../../../plugins/platform/resources/index.js'
import { probe } from '../../../../testing/traces.js'
import { type BootOptions, boot, temporaryFolder } from '../../../harness/kernel.js'

/** A kernel with workspaces and the window manager, and a workspace in it; `home` keeps it over a restart. */
export async function scene(options: Partial<BootOptions> = {}) {
  const services = probe({ events: Events, windows: WindowManager })
  const host = await boot({ plugins: [daemon, resources, workspaces, windowManager, services.plugin], ...options })
  const folder = await realpath(await temporaryFolder('windows'))
  const workspace = async (name: string): Promise<string> => {
    const root_dir = path.join(folder, name)
    await mkdir(root_dir)
    return (await host.request('POST', '/api/workspaces', { root_dir, name })).body.workspace.id
  }
  const base = (id: string) => `/api/workspaces/${id}/window-manager`
  const state = async (id: string) => (await host.request('GET', base(id))).body
  /** A command at the newest revision, or at the one given. */
  const command = async (id: string, command_id: string, payload: object = {}, more: object = {}) =>
    host.request('POST', `${base(id)}/commands`, {
      expected_revision: (await state(id)).revision,
      command_id,
      payload,
      ...more,
    })
  const end = async () => {
    await host.close()
    await rm(folder, { recursive: true, force: true })
  }
  return { host, workspace, base, state, command, end, folder, inside: services.kernel }
}

/** Status and code of a reply, as `409 window_manager_revision_conflict`. */
export const outcome = ({ status, body }: { status: number; body: { code?: string } | undefined }) =>
  `${status} ${body?.code ?? ''}`.trim()
