// A kernel with a process of an extension, in a process of its own, and a bare process that gives back what it is sent.

import { spawn } from 'node:child_process'
import { mkdtemp, readFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { createKernel } from '../../kernel/index.js'
import { Callers } from '../../kernel/platform.js'
import { definePlugin, Host, maybe, Requests } from '../../kernel/plugin.js'
import { Confinement } from '../../plugins/access/sandboxes/api.js'
import { LogRing } from '../../plugins/delivery/extensions/load/log-ring.js'
import { readManifest } from '../../plugins/delivery/extensions/manifest/manifest.js'
import {
  type SubprocessKernel,
  SubprocessRuntime,
  SubprocessSettings,
  subprocessHost,
} from '../../plugins/delivery/extensions/subprocess/index.js'
import { sourceTable } from '../../plugins/delivery/extensions/subprocess/snapshots.js'
import { base } from '../../plugins/index.js'
import { Events } from '../../plugins/platform/events/api.js'
import { Processes } from '../../plugins/platform/processes/api.js'
import { Sessions } from '../../plugins/work/sessions/api.js'
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
    let own: SubprocessKernel | undefined
    const owner = definePlugin({
      name: 'bench',
      version: '1.0.0',
      requires: {
        host: Host,
        request: Requests,
        callers: Callers,
        events: Events,
        processes: Processes,
        sandboxes: maybe(Confinement),
        sessions: maybe(Sessions),
      },
      service: async () =>
        class {
          constructor(kernel: SubprocessKernel) {
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
    runtime = new SubprocessRuntime(subprocessHost(own as unknown as SubprocessKernel), extension, {
      logs: new LogRing('epoch', (own as unknown as SubprocessKernel).clock),
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
