import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { build } from 'esbuild'
import type { Report } from './report.js'

/** What every section of the bench is handed. */
export interface Context {
  readonly root: string
  readonly bench: string
  /** Removed at the end. */
  readonly temp: string
  readonly report: Report
  readonly quick: boolean
  /** better-sqlite3 is there. */
  readonly native: boolean
  /** The built program of a process, by its name: `store-process`. */
  readonly program: (name: string) => string
}

/** What is measured, by the name of its section. */
export type Sections = Readonly<Record<string, readonly ((context: Context) => Promise<void>)[]>>

const PROGRAMS = [
  'store-process',
  'journal-process',
  'kernel-process',
  'echo',
  'door-process',
  'audit-process',
  'body',
  'load',
  'daemon-gap',
  'automation-process',
  'tasks-process',
  'tasks-load',
  'triggers-process',
  'webhook-bare',
  'webhook-load',
  'extension-process',
  'extension-host',
  'extension-imports',
  'extension-start',
  'bundles-process',
  'network-process',
  'hooks-process',
  'overview-process',
  'chat-bot',
  'processes-process',
  'acp-agent',
  'acp-client',
  'mcp-client',
  'mcp-server',
  'broadcast',
  'stream-load',
  'sessions-fill',
  'grown-process',
]

/**
 * Builds the processes of the bench as the product is built, for a loader of TypeScript would slow down what is measured; of
 * another checkout those that it has.
 */
export async function buildPrograms(root: string): Promise<(name: string) => string> {
  // Below the root, so that packages are found.
  const outdir = path.join(root, 'node_modules/.cache/svc-bench')
  // A checkout of an earlier version has its programs elsewhere.
  const folder = ['test/bench', 'bench'].find(name => existsSync(path.join(root, name))) ?? 'bench'
  await build({
    absWorkingDir: root,
    entryPoints: Object.fromEntries(
      PROGRAMS.filter(name => existsSync(path.join(root, folder, `${name}.ts`))).map(name => [
        name,
        `${folder}/${name}.ts`,
      ]),
    ),
    outdir,
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    packages: 'external',
    outExtension: { '.js': '.mjs' },
    logLevel: 'warning',
  })
  return name => path.join(outdir, `${name}.mjs`)
}

/** A folder for the run, below $TMPDIR: let that be on the disk that is to be measured. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'svc-bench-'))
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
  return folder
}
