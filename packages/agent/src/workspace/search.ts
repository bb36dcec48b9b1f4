import { opendir } from 'node:fs/promises'
import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { createContext, Script } from 'node:vm'
import { clip } from '../text.js'
import { Refused } from './paths.js'
import { readPlain } from './plain-file.js'

/** Skipped folders: version control and installed packages. */
const PASSED_OVER = new Set(['.git', '.hg', '.svn', 'node_modules', '__pycache__', '.venv'])
const MAX_ENTRIES = 20_000
const MAX_DEPTH = 40
const MAX_SEARCHED_BYTES = 1024 * 1024
const MAX_LINE = 2000
const MAX_PATTERN = 500
/** Milliseconds for a pattern, per file and in all: some patterns never finish. */
const FILE_MS = 500
const ALL_MS = 15_000

export interface Found {
  readonly path: string
  readonly line: number
  readonly text: string
}

/** Regular files below a folder, sorted by name. Symlinks are not followed. */
export async function filesBelow(
  folder: string,
  signal: AbortSignal,
): Promise<{ readonly files: readonly string[]; readonly isCut: boolean }> {
  const files: string[] = []
  let entries = 0
  const walk = async (at: string, depth: number): Promise<void> => {
    const here = []
    for await (const entry of await opendir(at).catch(() => [])) {
      signal.throwIfAborted()
      if (++entries > MAX_ENTRIES) break
      here.push(entry)
    }
    here.sort((a, b) => (a.name < b.name ? -1 : 1))
    for (const entry of here) {
      if (entry.isFile()) files.push(join(at, entry.name))
      else if (entry.isDirectory() && !PASSED_OVER.has(entry.name) && depth < MAX_DEPTH && entries <= MAX_ENTRIES) {
        await walk(join(at, entry.name), depth + 1)
      }
    }
  }
  await walk(folder, 0)
  return { files, isCut: entries > MAX_ENTRIES }
}

/**
 * Converts a glob over relative paths (`*`, `?`, `**`, `{a,b}`) to a regular expression.
 * @throws {Refused}
 */
export function globSource(glob: string): string {
  if (glob.length === 0 || glob.length > MAX_PATTERN) throw new Refused(`a glob has 1 to ${MAX_PATTERN} characters`)
  // A glob without a slash matches in every folder.
  const whole = glob.includes('/') ? glob.replace(/^\.?\//, '') : `**/${glob}`
  let open = 0
  const source = whole.replace(/\*\*\/|\*+|\?|[{},]|[\\^$+.()|[\]]/g, token => {
    if (token === '**/') return '(?:[^/]+/)*'
    if (token === '?') return '[^/]'
    if (token[0] === '*') return token.length > 1 ? '.*' : '[^/]*'
    if (token === '{') return open++ >= 0 ? '(?:' : ''
    if (token === '}') return open-- > 0 ? ')' : '\\}'
    if (token === ',') return open > 0 ? '|' : ','
    return `\\${token}`
  })
  if (open !== 0) throw new Refused('the braces of the glob do not match')
  return `^${source}$`
}

/** Matches texts against a regular expression, with a time limit. */
export class Matcher {
  readonly #script = new Script(
    'const found = []; for (let i = 0; i < lines.length; i++) if (pattern.test(lines[i])) found.push(i); found',
  )
  readonly #source: string
  readonly #flags: string
  #left = ALL_MS

  /** @throws {Refused} If the regular expression is invalid. */
  constructor(source: string, isCaseBlind = false) {
    if (source.length === 0 || source.length > MAX_PATTERN) {
      throw new Refused(`a pattern has 1 to ${MAX_PATTERN} characters`)
    }
    this.#source = source
    this.#flags = isCaseBlind ? 'iu' : 'u'
    try {
      new RegExp(source, this.#flags)
    } catch {
      this.#flags = isCaseBlind ? 'i' : ''
      try {
        new RegExp(source, this.#flags)
      } catch (error) {
        throw new Refused(`the pattern is not a valid regular expression: ${(error as Error).message}`)
      }
    }
  }

  /**
   * Indexes of the matching lines.
   * @throws {Refused} If matching takes too long.
   */
  async indexes(lines: readonly string[]): Promise<readonly number[]> {
    await turn()
    const startedAt = performance.now()
    const context = createContext({ lines, pattern: new RegExp(this.#source, this.#flags) })
    try {
      if (this.#left <= 0) throw tooSlow()
      // The array belongs to another realm, so it is copied.
      return Array.from(this.#script.runInContext(context, { timeout: FILE_MS }) as number[], Number)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ERR_SCRIPT_EXECUTION_TIMEOUT') throw tooSlow()
      throw error
    } finally {
      this.#left -= performance.now() - startedAt
    }
  }
}

/** Matching lines of a text file; none if it is too large or binary. */
export async function linesMatching(file: string, matcher: Matcher): Promise<readonly Omit<Found, 'path'>[]> {
  const bytes = await readPlain(file, MAX_SEARCHED_BYTES).catch(() => undefined)
  if (!bytes || bytes.subarray(0, 8192).includes(0)) return []
  const lines = bytes
    .toString()
    .split('\n')
    .map(line => clip(line, MAX_LINE))
  return (await matcher.indexes(lines)).map(at => ({ line: at + 1, text: lines[at] ?? '' }))
}

const tooSlow = () => new Refused('the pattern takes too long; use a simpler one, or a smaller folder')
