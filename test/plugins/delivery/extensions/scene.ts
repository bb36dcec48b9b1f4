import { mkdir, rename, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { daemon, extensions, resources } from '../../../../plugins/index.js'
import type { BootOptions } from '../../../harness/kernel.js'
import { boot, type TestKernel, temporaryFolder } from '../../../harness/kernel.js'

export interface Scene extends TestKernel {
  /** Writes the files of an extension, at once as far as others can see when `whole`. */
  drop(name: string, files: Readonly<Record<string, string>>, whole?: boolean): Promise<void>
  remove(name: string): Promise<void>
  /** Waits until the extension is so, at most 10 s. */
  until(name: string, wanted: (extension: Wire | undefined) => boolean | Promise<boolean>): Promise<Wire | undefined>
}

// biome-ignore lint/suspicious/noExplicitAny: as it is on the wire
export type Wire = any

/** A kernel with extensions on a folder of its own, by the system's clock: files are watched in real time. */
export async function scene(
  dropped: Readonly<Record<string, Readonly<Record<string, string>>>> = {},
  options: Partial<BootOptions> & { config?: string } = {},
): Promise<Scene> {
  const home = options.home ?? (await temporaryFolder('extensions'))
  const at = (name: string) => path.join(home, 'extensions', name)
  const write = async (folder: string, files: Readonly<Record<string, string>>) => {
    for (const [name, text] of Object.entries(files)) {
      await mkdir(path.dirname(path.join(folder, name)), { recursive: true })
      await writeFile(path.join(folder, name), text)
    }
  }
  for (const [name, files] of Object.entries(dropped)) await write(at(name), files)
  if (options.config) await writeFile(path.join(home, 'config.json'), options.config)
  const { config: _, ...rest } = options
  const svc = await boot({ plugins: [daemon, resources, extensions], ...rest, home })
  return {
    ...svc,
    drop: async (name, files, whole = false) => {
      if (!whole) return write(at(name), files)
      const staged = path.join(home, 'extensions', `.${name}`)
      await write(staged, files)
      await rename(staged, at(name))
    },
    remove: name => rm(at(name), { recursive: true }),
    async until(name, wanted) {
      const deadline = performance.now() + 60_000
      for (;;) {
        const { status, body } = await svc.request('GET', `/api/extensions/${name}`)
        const found = status === 200 ? body.extension : undefined
        if (await wanted(found)) return found
        if (performance.now() > deadline) throw new Error(`${name} stays ${JSON.stringify(found)}`)
        await new Promise(resolve => setTimeout(resolve, 20))
      }
    },
    async close() {
      await svc.close()
      if (options.home === undefined) await rm(home, { recursive: true, force: true })
    },
  }
}

export const isActive = (extension: Wire | undefined) => extension?.state === 'active'
export const hasFailed = (extension: Wire | undefined) => extension?.last_error !== undefined
export const isGone = (extension: Wire | undefined) => extension === undefined

/** The files of an extension whose route `/api/ext/<name>/say` answers with a text. */
export function textExtension(name: string, text: string, body = '', more = ''): Record<string, string> {
  return {
    'extension.toml': `name = "${name}"\nversion = "1.0.0"\napiVersion = 1\nmain = "main.js"\n${more}`,
    'main.js': `import { definePlugin, ok, routeOf } from 'svc/plugin'
import * as v from 'valibot'
import { text } from './text.js'
const route = routeOf()
export default definePlugin({
  name: '${name}', version: '1.0.0',
  service: async () => class { constructor(kernel) { this.kernel = kernel } async start() { const { kernel } = this; ${body} } },
}).surface({
  routes: [route({
    method: 'GET', path: '/api/ext/${name}/say', area: 'Test', summary: 'Says a text',
    replies: { 200: v.object({ text: v.string() }) }, cli: { path: '${name.replace('.', ' ')}', view: { text: 'text' } },
    handle: () => ok({ text }),
  })],
})
`,
    'text.js': `export const text = ${JSON.stringify(text)}\n`,
  }
}
