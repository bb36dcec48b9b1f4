// Bare Node that imports the module of the extension again and again, its imports being there: what Node itself keeps of each.
import { mkdir, mkdtemp, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { answer } from './child.js'
import { moduleOf } from './extension-module.js'
import { rssAfter } from './memory.js'

const STUBS = {
  svc: 'export const definePlugin = () => ({ surface: x => x }), ok = x => x, routeOf = () => x => x\n',
  valibot: 'export const object = x => x, number = () => 1, string = () => 2\n',
}
let folder: string

const handlers = {
  async start(): Promise<void> {
    folder = await mkdtemp(path.join(os.tmpdir(), 'svc-bench-imports-'))
    await writeFile(path.join(folder, 'package.json'), '{"type":"module"}')
    for (const [name, text] of Object.entries(STUBS)) await writeFile(path.join(folder, `${name}.js`), text)
  },

  /** So many imports; by how many bytes memory grew for each. */
  churn: (count: number): Promise<number> =>
    rssAfter(count, async n => {
      const own = path.join(folder, String(n))
      const text = moduleOf(n).replace("'svc/plugin'", "'../svc.js'").replace("'valibot'", "'../valibot.js'")
      await mkdir(own)
      await writeFile(path.join(own, 'main.js'), text)
      await import(pathToFileURL(path.join(own, 'main.js')).href)
    }),
}

export type ExtensionImportHandlers = typeof handlers
answer(handlers)
