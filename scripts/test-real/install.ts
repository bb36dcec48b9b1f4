// Installs real agents from the npm registry once, at the versions pinned in test/real/agents.ts.
import { execFile } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { mkdir, rename, rm } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { performance } from 'node:perf_hooks'
import { promisify } from 'node:util'

const run = promisify(execFile)
const INSTALL_MS = 180_000

/** Installation folder: $SVC_REAL_CACHE, else a folder in the user's cache. */
export const root =
  process.env.SVC_REAL_CACHE ||
  path.join(process.env.XDG_CACHE_HOME || path.join(os.homedir(), '.cache'), 'svc-real-agents')

/** The registry does not provide a package. */
export class NotInstalled extends Error {}

/** A package under test. */
export interface Tried {
  readonly package: string
  readonly version: string
  /** Versions of additional packages by name. */
  readonly with?: Readonly<Record<string, string>>
}

/**
 * Installs a package unless its version is installed already. The rename makes a folder appear complete or not at all.
 * @throws {NotInstalled}
 */
export async function install(name: string, agent: Tried): Promise<void> {
  const folder = path.join(root, name)
  const manifest = path.join(folder, 'node_modules', agent.package, 'package.json')
  const has = existsSync(manifest) && JSON.parse(readFileSync(manifest, 'utf8')).version === agent.version
  if (has) return
  const begun = performance.now()
  const fresh = `${folder}.${process.pid}`
  await mkdir(fresh, { recursive: true })
  const what = `${agent.package}@${agent.version}`
  try {
    const quiet = ['--no-audit', '--no-fund', '--loglevel=error', '--fetch-retries=1']
    const more = Object.entries(agent.with ?? {}).map(([name, version]) => `${name}@${version}`)
    await run('npm', ['install', '--prefix', fresh, what, ...more, ...quiet], { timeout: INSTALL_MS })
    await rm(folder, { recursive: true, force: true })
    await rename(fresh, folder)
  } catch (error) {
    await rm(fresh, { recursive: true, force: true })
    const { stderr, message } = error as { stderr?: string; message: string }
    throw new NotInstalled(`${what} cannot be installed: is the npm registry reachable?\n${stderr || message}`)
  }
  console.log(`installed ${what}  ${((performance.now() - begun) / 1000).toFixed(1)} s`)
}
