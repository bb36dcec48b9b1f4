// A kernel with extensions on a socket, in a process of its own; what comes and goes is told to it by the bench.
import { mkdir, mkdtemp, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { createKernel, type Kernel } from '../../kernel/index.js'
import { base, daemon, extensions, installer, resources, subprocessHost, workspaces } from '../../plugins/index.js'
import { resources as handles, settled } from '../../testing/traces.js'
import { answer } from './child.js'
import { manifest, moduleOf, NAME } from './extension-module.js'
import { rssAfter } from './memory.js'

let kernel: Kernel
let folder: string

async function ask(method: string, url: string, body?: unknown): Promise<Record<string, unknown>> {
  const reply = await kernel.inject({ method, url, ...(body === undefined ? {} : { body }) })
  if (reply.status !== 200) throw new Error(`${method} ${url}: ${reply.status} ${reply.body}`)
  return JSON.parse(reply.body)
}

let generation = 0
async function reload(): Promise<void> {
  await writeFile(path.join(folder, 'main.js'), moduleOf(++generation))
  await ask('POST', `/api/extensions/${NAME}/reload`)
}

/** Calls again and again for so many milliseconds. @returns how often */
async function during(ms: number, work: () => Promise<unknown>): Promise<number> {
  const end = performance.now() + ms
  let count = 0
  for (; performance.now() < end; count++) await work()
  return count
}

const handlers = {
  /** @returns the path of the socket */
  async start(): Promise<string> {
    const home = await mkdtemp(path.join(os.tmpdir(), 'svc-bench-extensions-'))
    folder = path.join(home, 'extensions', NAME)
    await mkdir(folder, { recursive: true })
    const files = { 'extension.toml': manifest, 'main.js': moduleOf(0) }
    for (const [name, text] of Object.entries(files)) await writeFile(path.join(folder, name), text)
    const plugins = [...base, daemon, resources, workspaces, installer, subprocessHost, extensions]
    kernel = await createKernel({ home, plugins, env: process.env, listen: ['socket'] })
    for (;;) {
      const { extensions: all } = (await ask('GET', '/api/extensions')) as { extensions: { state: string }[] }
      if (all[0]?.state === 'active') return path.join(home, 'daemon.sock')
      await new Promise(resolve => setTimeout(resolve, 10))
    }
  },

  /** Unloads and loads it. */
  cycles: (ms: number): Promise<number> =>
    during(ms, async () => {
      for (const verb of ['disable', 'enable']) await ask('POST', `/api/extensions/${NAME}/${verb}`)
    }),

  reloads: (ms: number): Promise<number> => during(ms, reload),

  /** So many reloads; `grown` is what memory grew by one of them, in bytes, and `source` what its modules have. */
  async churn(count: number) {
    const held: string[] = []
    // The last change is published, and what the folder's watcher heard of it is looked at.
    const quiet = async () => {
      await settled()
      held.push(JSON.stringify({ plugins: kernel.host.plugins(), handles: handles() }))
    }
    const grown = await rssAfter(count, reload, quiet)
    const [before, after] = held
    return {
      grown,
      source: Buffer.byteLength(moduleOf(generation)),
      same: before === after,
      differ: before === after ? '' : `${before}\n${after}`,
    }
  },
}

export type ExtensionHostHandlers = typeof handlers
answer(handlers)
