import { mkdir, realpath, rm } from 'node:fs/promises'
import path from 'node:path'
import * as assert from 'uvu/assert'
import type { Plugin, PluginKernel } from '../../../../kernel/plugin.js'
import { definePlugin } from '../../../../kernel/plugin.js'
import vault from '../../../../plugins/access/vault/index.js'
import daemon from '../../../../plugins/desk/daemon/index.js'
import workspaces from '../../../../plugins/desk/workspaces/index.js'
import { Events } from '../../../../plugins/platform/events/api.js'
import resources from '../../../../plugins/platform/resources/index.js'
import { Bridges, type BridgesApi } from '../../../../plugins/reach/bridges/api.js'
import bridges from '../../../../plugins/reach/bridges/index.js'
import { VirtualClock } from '../../../../testing/virtual-clock.js'
import { type BootOptions, boot, type Reply, temporaryFolder, whileTimePasses } from '../../../harness/kernel.js'
import { FakePlatform } from './fake-platform.js'

type Needs = { bridges: typeof Bridges; events: typeof Events }

/** A kernel with bridges and platforms in memory; time passes only while something is waited for. */
export async function scene(
  platforms: readonly FakePlatform[] = [new FakePlatform()],
  { plugins = [], ...options }: Partial<BootOptions> & { readonly plugins?: readonly Plugin[] } = {},
) {
  const folder = await realpath(await temporaryFolder('bridges'))
  const home = options.home ?? path.join(folder, 'home')
  await mkdir(home, { recursive: true, mode: 0o700 })
  const clock = new VirtualClock()
  const inside: { kernel?: PluginKernel<Needs> } = {}
  const probe = definePlugin({
    name: 'probe',
    version: '1.0.0',
    requires: { bridges: Bridges, events: Events },
    service: async () =>
      class {
        constructor(kernel: PluginKernel<Needs>) {
          inside.kernel = kernel
        }
      },
  }).surface({})
  const host = await whileTimePasses(
    clock,
    boot({
      plugins: [
        daemon,
        resources,
        workspaces,
        vault,
        bridges,
        probe,
        ...platforms.map(({ plugin }) => plugin),
        ...plugins,
      ],
      clock,
      ...options,
      home,
    }),
  )
  const request = (method: string, url: string, body?: unknown) =>
    whileTimePasses(clock, host.request(method, url, body))
  /** Waits until the condition holds, while time passes. */
  const until = (what: string, holds: () => unknown) => whileTimePasses(clock, untilTrue(what, holds))
  const create = async (more: Record<string, unknown> = {}) => {
    const { status, body } = await request('POST', '/api/bridges', instance(more))
    assert.is(status, 201, JSON.stringify(body))
    return body.bridge as Reply
  }
  const statusOf = async (id: string): Promise<string> =>
    (await request('GET', `/api/bridges/${id}`)).body.bridge?.status
  const reaches = (id: string, status: string) =>
    until(`the bridge is ${status}`, () => api().get(id)?.status === status)
  const workspace = async (name = 'project') => {
    const root_dir = path.join(folder, name)
    await mkdir(root_dir, { recursive: true })
    const { body } = await request('POST', '/api/workspaces', { root_dir })
    return body.workspace.id as string
  }
  const api = (): BridgesApi => (inside.kernel as PluginKernel<Needs>).needs.bridges
  const events = async (name: string) => {
    await (inside.kernel as PluginKernel<Needs>).db.durable()
    return (await (inside.kernel as PluginKernel<Needs>).needs.events.list({ name })).map(
      ({ payload }) => payload as Reply,
    )
  }
  const clean = () => rm(folder, { recursive: true, force: true })
  const end = async () => {
    await whileTimePasses(clock, host.close())
    await clean()
  }
  /** Ends the daemon; another scene can go on with its home. */
  const leave = () => whileTimePasses(clock, host.close())
  return {
    host,
    clock,
    request,
    until,
    create,
    statusOf,
    reaches,
    workspace,
    api,
    events,
    folder,
    home,
    inside: () => inside.kernel as PluginKernel<Needs>,
    leave,
    clean,
    end,
  }
}

export const instance = (more: Record<string, unknown> = {}) => ({
  display_name: 'Team chat',
  platform: 'fakechat',
  extension_name: 'fakechat',
  routing_policy: { include_peer: true },
  scope: 'global',
  enabled: true,
  ...more,
})

/** `409 bridge_transition` */
export const outcome = ({ status, body }: { status: number; body: Reply }) => `${status} ${body?.code ?? ''}`.trim()

async function untilTrue(what: string, holds: () => unknown): Promise<void> {
  for (let n = 0; n < 5000; n++) {
    if (await holds()) return
    await new Promise(resolve => setTimeout(resolve, 1))
  }
  throw new Error(`it never happened that ${what}`)
}
