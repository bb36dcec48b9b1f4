// A kernel with a process of an extension, in a process of its own, and a bare process that gives back what it is sent.

import { spawn } from 'node:child_process'
import { mkdtemp, readFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { createKernel } from '../../kernel/index.js'
import { definePlugin, Host } from '../../kernel/plugin.js'
import { LogRing } from '../../plugins/delivery/extensions/load/log-ring.js'
import { readManifest } from '../../plugins/delivery/extensions/manifest/manifest.js'
import { storageOf } from '../../plugins/delivery/extensions/storage/storage.js'
import { type K, needs } from '../../plugins/delivery/subprocess-host/needs.js'
import { SubprocessRuntime } from '../../plugins/delivery/subprocess-host/runtime.js'
import { SubprocessHostService } from '../../plugins/delivery/subprocess-host/service.js'
import { SubprocessSettings } from '../../plugins/delivery/subprocess-host/settings.js'
import { sourceTable } from '../../plugins/delivery/subprocess-host/snapshots.js'
import { base } from '../../plugins/index.js'
import { answer } from './child.js'

/** Milliseconds. */
export interface Latency {
  readonly p50: number
  readonly p99: number
}

let runtime: SubprocessRuntime

async function latency(calls: number, call: () => Promise<unknown>): Promise<Latency> {
  const times: number[] = []
  for (let i = 0; i < calls; i++) {
    const began = performance.now()
    await call()
    times.push(performance.now() - began)
  }
  times.sort((a, b) => a - b)
  const at = (part: number) => times[Math.floor(times.length * part)] ?? 0
  return { p50: at(0.5), p99: at(0.99) }
}

const bare = spawn(process.execPath, ['-e', 'process.stdin.pipe(process.stdout)'], {
  stdio: ['pipe', 'pipe', 'inherit'],
})
const waiting: ((line: string) => void)[] = []
createInterface({ input: bare.stdout }).on('line', line => waiting.shift()?.(line))

const handlers = {
  /** @param root folder of an extension that answers `provide_tools` */
  async start(root: string): Promise<void> {
    let own: K | undefined
    const owner = definePlugin({
      name: 'bench',
      version: '1.0.0',
      requires: { ...needs, daemon: Host },
      service: async () =>
        class {
          constructor(kernel: K) {
            own = kernel
          }
        },
    }).surface({ settings: Object.values(SubprocessSettings) as never, inherits: [sourceTable] })
    const home = await mkdtemp(path.join(os.tmpdir(), 'svc-bench-extension-'))
    await createKernel({ home, plugins: [...base, owner], env: process.env })
    const manifest = await readManifest(root, file => readFile(file, 'utf8'))
    const { name, version } = manifest
    const extension = {
      name,
      key: name,
      version,
      root,
      manifest,
      enabled: true,
      state: 'active',
      tier: 'user',
      digest: '',
    } as const
    const kernel = own as unknown as K
    runtime = new SubprocessRuntime(new SubprocessHostService(kernel).host, extension, {
      logs: new LogRing('epoch', kernel.clock),
      storage: storageOf(kernel, name),
    })
    await runtime.start()
  },

  ours: (calls: number): Promise<Latency> => latency(calls, () => runtime.call('provide_tools', {})),

  bare: (calls: number): Promise<Latency> =>
    latency(
      calls,
      () =>
        new Promise(resolve => {
          waiting.push(resolve)
          bare.stdin.write('{"jsonrpc":"2.0","id":1,"method":"provide_tools","params":{}}\n')
        }),
    ),

  async stop(): Promise<void> {
    await runtime.stop()
    bare.kill()
  },
}

export type ExtensionHandlers = typeof handlers
answer(handlers)
