import { createHash } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { basename, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { Script } from 'node:vm'
import { readRegularFileSync } from '../../kernel/kit/read-file.js'

/** A file that was run. */
export interface Loaded {
  /** What it exports. */
  readonly exports: unknown
  /** There only when no cache was found: writes what V8 has compiled by now for the next start. Never throws. */
  readonly keep?: () => void
}

const digestBytes = 32
/** Many times what V8 makes of the daemon. */
const MAX_CACHE_BYTES = 256 * 1024 * 1024

/**
 * Runs a file of the build that is a function of `require`, `module`, `moduleUrl` and `importForeign`. What V8 compiled of it
 * in an earlier process is taken from the first folder that has it, and kept in `own`, which is looked into first.
 *
 * The cache spares time and decides nothing: its name says of which code, where, and of which Node it is, its first bytes
 * are the digest of the others, and V8 refuses what was made under other flags. Whatever is wrong with it, the code is
 * compiled.
 */
export function runCached(file: string, own: string, ...others: readonly string[]): Loaded {
  const code = readFileSync(file)
  const name = `${basename(file, '.cjs')}-${digest(code, file, process.version, process.arch).toString('hex')}`
  const cachedData = [own, ...others].map(folder => readCache(join(folder, name))).find(found => found !== undefined)
  // All of it is ASCII, which is read twice as fast so.
  const script = new Script(code.toString('latin1'), { filename: file, cachedData })
  const module = { exports: {} as unknown }
  const url = pathToFileURL(file).href
  // Handed in, for what comes out of the cache does not know how to import.
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

/** Replaces those of other code; a folder that cannot be written costs the next start some time and is no fault. */
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
