import { createHash } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { basename, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { Script } from 'node:vm'
import { readRegularFileSync } from '../../kernel/kit/read-file.js'

/** A file that was run. */
export interface Loaded {
  /** The exports of the file. */
  readonly exports: unknown
  /** Present only without a usable cache: writes V8's compiled code for the next start. Never throws. */
  readonly keep?: () => void
}

const digestBytes = 32
/** Far above the size of the daemon's compiled code. */
const MAX_CACHE_BYTES = 256 * 1024 * 1024

/**
 * Runs a file of the build that is a function of `require`, `module`, `moduleUrl` and `importForeign`. Compiled code of an earlier
 * process is read from the first folder that has it, and is stored in `own`, which is searched first.
 *
 * The cache only saves time: its name contains the digest of the code, its place and the Node version, its first bytes are the
 * digest of the rest, and V8 rejects code compiled with other flags. An invalid cache is ignored and the code is compiled.
 */
export function runCached(file: string, own: string, ...others: readonly string[]): Loaded {
  const code = readFileSync(file)
  const name = `${basename(file, '.cjs')}-${digest(code, file, process.version, process.arch).toString('hex')}`
  const cachedData = [own, ...others].map(folder => readCache(join(folder, name))).find(found => found !== undefined)
  // The code is pure ASCII; reading it as latin1 is twice as fast.
  const script = new Script(code.toString('latin1'), { filename: file, cachedData })
  const module = { exports: {} as unknown }
  const url = pathToFileURL(file).href
  // Passed in, because code from the cache cannot import by itself.
  script.runInThisContext()(createRequire(url), module, url, (wanted: string) => import(wanted))
  const { exports } = module
  if (cachedData !== undefined && script.cachedDataRejected === false) return { exports }
  return { exports, keep: () => writeCache(own, name, script.createCachedData()) }
}

function digest(...parts: readonly (string | Uint8Array)[]): Buffer {
  const hash = createHash('sha256')
  for (const part of parts) hash.update(part)
  return hash.digest()
}

function readCache(file: string): Buffer | undefined {
  try {
    const bytes = readRegularFileSync(file, { maxBytes: MAX_CACHE_BYTES })
    if (!bytes) return undefined
    const data = bytes.subarray(digestBytes)
    return digest(data).equals(bytes.subarray(0, digestBytes)) ? data : undefined
  } catch {
    return undefined
  }
}

/** Replaces caches of other code. An unwritable folder only makes the next start slower. */
function writeCache(folder: string, name: string, data: Buffer): void {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    for (const other of readdirSync(folder))
      if (other !== name) rmSync(join(folder, other), { recursive: true, force: true })
    const temporary = join(folder, `${name}.tmp`)
    writeFileSync(temporary, Buffer.concat([digest(data), data]), { flag: 'wx', mode: 0o600 })
    renameSync(temporary, join(folder, name))
  } catch {}
}
