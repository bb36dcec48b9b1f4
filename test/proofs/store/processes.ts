import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, mkdtemp, rm } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

const here = path.dirname(fileURLToPath(import.meta.url))

/** Runs `use` with a folder below the system's temporary one, removed afterwards. */
export async function inFolder<T>(use: (folder: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'svc-prove-'))
  try {
    return await use(folder)
  } finally {
    // What was killed may still be writing for a moment.
    await rm(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 })
  }
}

/** A copy of a folder, so that looking at it changes nothing. */
export function onCopy<T>(folder: string, use: (copy: string) => Promise<T>): Promise<T> {
  return inFolder(async copy => {
    await cp(folder, copy, { recursive: true })
    return use(copy)
  })
}

/** The child as one file, so that a start is cheap; below the project, so that its packages are found. */
export async function withChild<T>(use: (script: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(path.join(here, '../../../node_modules/.svc-prove-'))
  try {
    const outfile = path.join(folder, 'child.mjs')
    await build({
      entryPoints: [path.join(here, 'child.ts')],
      // Before everything else: it changes what Node's file calls do.
      inject: [path.join(here, 'fault.ts')],
      outfile,
      bundle: true,
      platform: 'node',
      format: 'esm',
      packages: 'external',
      logLevel: 'error',
    })
    return await use(outfile)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** How a child ended, and all whole lines that it told. */
export interface Ended {
  readonly code: number | null
  readonly signal: string | null
  readonly lines: readonly string[]
  readonly errors: string
}

/** Runs the child; `told` sees the lines as they come and may kill it. */
export async function runChild(
  script: string,
  args: readonly (string | number)[],
  told: (lines: number, kill: () => void) => void = () => {},
): Promise<Ended> {
  const child = spawn(process.execPath, [script, ...args.map(String)], { stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  let errors = ''
  let lines = 0
  child.stderr.on('data', chunk => {
    errors += chunk
  })
  child.stdout.on('data', chunk => {
    const text = String(chunk)
    output += text
    lines += text.split('\n').length - 1
    told(lines, () => child.kill('SIGKILL'))
  })
  const [code, signal] = await once(child, 'close')
  return { code, signal, errors, lines: output.split('\n').slice(0, -1) }
}

/** The largest number among the lines. */
export function largest(lines: readonly string[]): number {
  return Math.max(0, ...lines.map(Number).filter(Number.isFinite))
}
