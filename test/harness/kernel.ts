import { mkdtemp, rm } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { createKernel, type Kernel, type KernelOptions, type LogLine } from '../../kernel/index.js'
import type { Ports } from '../../kernel/platform.js'
import type { Clock, Plugin } from '../../kernel/plugin.js'
import {
  acp,
  base,
  extensions,
  filePorts,
  installer,
  sessions,
  subprocessHost,
  worktrees,
} from '../../plugins/index.js'
import { inspectProcess } from '../../plugins/platform/processes/api.js'
import type { VirtualClock } from '../../testing/virtual-clock.js'
import { validateReply } from './contract.js'
import { undeclaredCode } from './error-codes.js'
import { beginHome } from './home-template.js'

export interface BootOptions extends Partial<Omit<KernelOptions, 'plugins' | 'home'>> {
  readonly plugins: readonly Plugin[]
  /** Boots nothing but `plugins`, with the ports that these work with; else those of the package that others build on are added. */
  readonly bare?: boolean
  /** Kept after close; default a temporary folder that goes. */
  readonly home?: string
  readonly clock?: Clock
}

// biome-ignore lint/suspicious/noExplicitAny: tests look into replies of any shape
export type Reply = any

export interface TestKernel {
  readonly kernel: Kernel
  readonly home: string
  readonly log: readonly LogLine[]
  /** Through `inject`; a reply that does not match the contract data throws. */
  request(
    method: string,
    url: string,
    body?: unknown,
  ): Promise<{ status: number; body: Reply; headers: Readonly<Record<string, unknown>> }>
  close(): Promise<void>
}

/** Boots a kernel on a temporary home. */
export async function boot(options: BootOptions): Promise<TestKernel> {
  const home = options.home ?? (await temporaryFolder('home'))
  const log: LogLine[] = []
  const plugins = options.bare ? options.plugins : withBase(options.plugins)
  if (options.disk === undefined && options.freeBytes === undefined) await beginHome(home, plugins)
  const kernel = await createKernel({
    checkReplies: true,
    startTime: inspectProcess(process.pid, process.platform)?.startTime,
    env: { PATH: process.env.PATH, HOME: home, SVC_HOME: home },
    ...(options.bare ? { ports: portsOf(plugins) } : {}),
    ...options,
    plugins,
    home,
    log: line => log.push(line),
  })
  return {
    kernel,
    home,
    log,
    async request(method, url, body) {
      const reply = await kernel.inject({ method, url, ...(body === undefined ? {} : { body }) })
      const parsed = reply.body === '' ? undefined : parse(reply.body)
      const wrong = validateReply(method, url.split('?')[0] as string, reply.status, parsed)
      if (wrong.length > 0)
        throw new Error(
          `${method} ${url} ${reply.status} does not match the contract: ${wrong.join('; ')}\n${reply.body}`,
        )
      const code = undeclaredCode(plugins, {
        method,
        path: url.split('?')[0] as string,
        status: reply.status,
        body: parsed,
      })
      if (code !== undefined) throw new Error(`${method} ${url} answers with ${code}, which it does not declare`)
      return { status: reply.status, body: parsed, headers: reply.headers }
    },
    async close() {
      const errors = await kernel.close()
      if (options.home === undefined) await rm(home, { recursive: true, force: true })
      if (errors.length > 0)
        throw new AggregateError(errors, `closing: ${errors.map(error => error.message).join('; ')}`)
    },
  }
}

/** The ports that plugins work with, where they are among these. */
function portsOf(plugins: readonly Plugin[]): Ports {
  const { settings, judges } = filePorts()
  const has = (wanted: string) => plugins.some(({ name }) => name === wanted)
  return { ...(has('configuration') && settings && { settings }), ...(has('journals') && judges && { judges }) }
}

/** The same with nothing but the plugins that are named. */
export const bootBare = (options: BootOptions): Promise<TestKernel> => boot({ ...options, bare: true })

/** Plugins that are parts of others. */
const PARTS: readonly (readonly [whole: Plugin, parts: readonly Plugin[]])[] = [
  [extensions, [installer, subprocessHost]],
  [sessions, [acp, worktrees]],
]

/** Those that others build on, and `plugins` with their parts; one of the same name takes the place of its like. */
export function withBase(plugins: readonly Plugin[]): Plugin[] {
  const names = new Set(plugins.map(({ name }) => name))
  const parts = PARTS.filter(([whole]) => plugins.includes(whole)).flatMap(([, own]) => own)
  return [...[...base, ...parts].filter(({ name }) => !names.has(name)), ...plugins]
}

/** A new folder below the system's temporary one. */
export function temporaryFolder(name: string): Promise<string> {
  return mkdtemp(path.join(os.tmpdir(), `svc-${name}-`))
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/** Lets virtual time pass, slowly beside the real one, until the work is done. */
export async function whileTimePasses<T>(clock: VirtualClock, work: Promise<T>, stepMs = 10): Promise<T> {
  let over = false
  const done = work.finally(() => {
    over = true
  })
  done.catch(() => {})
  while (!over) {
    await new Promise(resolve => setTimeout(resolve, 1))
    if (!over) await clock.advance(stepMs)
  }
  return done
}
