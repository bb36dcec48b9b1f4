import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'

/** A database of better-sqlite3, as far as it is used here. */
export interface NativeDatabase {
  exec(sql: string): unknown
  pragma(text: string): unknown
  prepare(sql: string): NativeStatement
  transaction(fn: () => void): { immediate(): void }
  close(): void
}
export interface NativeStatement {
  run(...params: readonly unknown[]): { changes: number }
  get(...params: readonly unknown[]): unknown
  all(...params: readonly unknown[]): unknown[]
  pluck(): NativeStatement
}
export type NativeConstructor = new (file: string) => NativeDatabase

const INSTALL_MS = 180_000

/** Installs what test/bench/package.json names when one of these packages is not there; returns why that failed, or undefined. */
export function installPackages(bench: string, names: readonly string[]): string | undefined {
  if (names.every(name => existsSync(path.join(bench, 'node_modules', name)))) return undefined
  console.log('installing the baselines into test/bench/node_modules, once …')
  const args = ['install', '--prefix', bench, '--no-audit', '--no-fund', '--no-package-lock', '--loglevel', 'error']
  const { status, error, stderr } = spawnSync('npm', args, { encoding: 'utf8', timeout: INSTALL_MS })
  if (status === 0) return undefined
  return `npm install failed: ${error?.message ?? /npm error (?!code|errno|syscall|path)(.*)/.exec(stderr)?.[1] ?? status}`
}

/** Installs better-sqlite3 when it is not there; returns why it cannot be used, or undefined. */
export function installNative(bench: string): string | undefined {
  const why = installPackages(bench, ['better-sqlite3/build'])
  if (why !== undefined) return why
  const program = `new (require(${JSON.stringify(path.join(bench, 'node_modules/better-sqlite3'))}))(':memory:').close()`
  const { status, stderr } = spawnSync(process.execPath, ['-e', program], { encoding: 'utf8' })
  return status === 0 ? undefined : `it does not load: ${/Error: (.*)/.exec(stderr)?.[1] ?? status}`
}

/** better-sqlite3 out of test/bench/node_modules, its files as durable as ours. */
export function openNative(bench: string, file: string): NativeDatabase {
  const Database = createRequire(path.join(bench, 'package.json'))('better-sqlite3') as NativeConstructor
  const db = new Database(file)
  db.pragma('journal_mode = WAL')
  db.pragma('synchronous = FULL')
  return db
}
