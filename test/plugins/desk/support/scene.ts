import { mkdir, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { gunzipSync } from 'node:zlib'
import * as v from 'valibot'
import { definePlugin, event, type Plugin, type PluginKernel } from '../../../../kernel/plugin.js'
import daemon from '../../../../plugins/desk/daemon/index.js'
import settings from '../../../../plugins/desk/settings/index.js'
import support from '../../../../plugins/desk/support/index.js'
import workspaces from '../../../../plugins/desk/workspaces/index.js'
import audit from '../../../../plugins/platform/audit/index.js'
import { Events } from '../../../../plugins/platform/events/api.js'
import type { SupportManifest, SupportOperation } from '../../../../schemas/daemon/support.js'
import { type BootOptions, boot, type TestKernel, temporaryFolder } from '../../../harness/kernel.js'

export const Told = event('alpha.failed', v.record(v.string(), v.unknown()))

export interface Scene extends TestKernel {
  inside(): PluginKernel<typeof needs>
  emit(...payloads: readonly Record<string, unknown>[]): Promise<unknown>
  /** Asks for a bundle and waits for its end. */
  make(body?: object): Promise<SupportOperation>
  /** The files of a bundle by name. */
  unpack(operation: SupportOperation): Promise<Map<string, string>>
  manifest(files: ReadonlyMap<string, string>): SupportManifest
}

const needs = { events: Events }

export interface SceneOptions extends Omit<Partial<BootOptions>, 'log'> {
  readonly log?: string
  readonly config?: object
  readonly more?: readonly Plugin[]
}

/** A daemon that makes bundles, with a log and a configuration that the test says. */
export async function scene({ log, config, more = [], ...options }: SceneOptions = {}): Promise<Scene> {
  const home = options.home ?? (await temporaryFolder('support'))
  if (config) await writeFile(path.join(home, 'config.json'), JSON.stringify(config))
  await mkdir(path.join(home, 'logs'), { recursive: true })
  await writeFile(path.join(home, 'logs', 'svc.log'), log ?? `${JSON.stringify({ level: 'info', msg: 'ready' })}\n`)
  let inside: PluginKernel<typeof needs>
  const teller = definePlugin({
    name: 'teller',
    version: '0.0.1',
    requires: needs,
    service: async () =>
      class {
        constructor(kernel: PluginKernel<typeof needs>) {
          inside = kernel
        }
      },
  }).surface({ events: [Told] })
  const plugins = [daemon, workspaces, settings, audit, support, teller, ...more]
  const svc = await boot({ ...options, home, plugins })
  return {
    ...svc,
    inside: () => inside,
    emit: (...payloads) =>
      inside.db.tx(t => {
        for (const payload of payloads) inside.needs.events.emit(t, Told, payload)
      }),
    make: async (body = { yes: true }) => {
      const { status, body: reply } = await svc.request('POST', '/api/support/bundles', body)
      if (status !== 202) throw new Error(`${status}: ${JSON.stringify(reply)}`)
      const { body: shown } = await svc.request('GET', `${reply.operation.status_url}?wait=true`)
      return shown.operation
    },
    unpack: async operation => {
      const { readFile } = await import('node:fs/promises')
      return filesOf(await readFile(path.join(home, 'support-bundles', operation.file_name as string)))
    },
    manifest: files => JSON.parse(files.get('manifest.json') as string),
  }
}

/** Files of a `.tar.gz` by name. */
export function filesOf(archive: Uint8Array): Map<string, string> {
  const bytes = gunzipSync(archive)
  const files = new Map<string, string>()
  for (let at = 0; bytes[at] !== 0 && at < bytes.length; ) {
    const text = (from: number, size: number) =>
      bytes.toString('latin1', at + from, at + from + size).replace(/\0.*$/s, '')
    const size = Number.parseInt(text(124, 12), 8)
    files.set(text(0, 100), bytes.toString('utf8', at + 512, at + 512 + size))
    at += 512 + Math.ceil(size / 512) * 512
  }
  return files
}
