import { type Dirent, type Stats, statSync } from 'node:fs'
import { readdir, realpath, stat } from 'node:fs/promises'
import path from 'node:path'
import { readRegularFile } from '../../../kernel/kit/read-file.js'
import { shown } from '../../../kernel/kit/text.js'
import { type Clock, messageOf, turn } from '../../../kernel/plugin.js'
import { isInside } from '../../desk/workspaces/api.js'
import type { Tier } from './api.js'
import { type Broken, type Candidate, type Findings, refusal } from './candidate.js'
import { type ScanWarning, scan } from './scan.js'
import { MAX_SKILL_BYTES, parseSkillFile, SKILL_FILE, skillFileIn } from './skill-file.js'
import { hashTree, listTree, META_FILE, readMeta, type SkillMeta, stampOfTree } from './tree-hash.js'

/** Maximum nesting of folders that group skills. */
const MAX_DEPTH = 4
/** Maximum skills of one folder; further ones are reported as a problem. */
const MAX_SKILLS = 5000
/**
 * Skills that are checked on every lookup; a larger folder is checked again after the `maxAge` of {@link
 * SkillFolder.look}.
 */
const CHECKED_AT_ONCE = 128
/** Resolution of file times in milliseconds: a change within it may not alter them. */
const TICK_MS = 100
/** Skills that are read concurrently. */
const PARALLEL = 16
/** Files and folders that are compared in one turn of the event loop. */
const LOOKS_PER_TURN = 256

interface Kept {
  readonly stamp: string
  readonly found: Candidate | Broken
}

/** The content of a folder, as of its stamp. */
interface Listing {
  readonly stamp: string
  /** The entries sorted by name, without hidden ones. */
  readonly entries: readonly Dirent[]
  /** Name of the SKILL.md. */
  readonly file: string | undefined
  /** Whether an entry has the name of the metadata of an installation. */
  readonly isManaged: boolean
}

/** A SKILL.md that was found. */
interface Place {
  readonly file: string
  readonly isManaged: boolean
}

/** A place of skills. Links are followed inside `root`. */
export interface SkillPlace {
  readonly folder: string
  readonly root: string
  readonly tier: Tier
  readonly ofWorkspace: boolean
}

/**
 * The skills of one folder, cached in memory and compared with their files on demand. Nothing is watched, so idle
 * skills cost nothing.
 */
export class SkillFolder {
  readonly #kept = new Map<string, Kept>()
  readonly #listings = new Map<string, Listing>()
  #looks = 0
  #findings: Findings = { candidates: [], broken: [] }
  #lookedAt = Number.NEGATIVE_INFINITY
  #running: Promise<Findings> | undefined

  constructor(
    readonly source: SkillPlace,
    private readonly clock: Clock,
  ) {}

  /**
   * The current skills. Concurrent calls share one check.
   * @param maxAge milliseconds that the result for a folder with many skills may be old
   */
  scan(maxAge: number): Promise<Findings> {
    const isLarge = this.#findings.candidates.length > CHECKED_AT_ONCE
    if (isLarge && this.clock.monotonic() - this.#lookedAt < maxAge) return Promise.resolve(this.#findings)
    this.#running ??= this.#scan().finally(() => {
      this.#running = undefined
    })
    return this.#running
  }

  /** Makes the next lookup check the files. */
  expire(): void {
    this.#lookedAt = Number.NEGATIVE_INFINITY
  }

  async #scan(): Promise<Findings> {
    const began = this.clock.monotonic()
    const { files, broken } = await this.#skillFiles()
    const found: (Candidate | Broken)[] = new Array(files.length)
    let next = 0
    const work = async () => {
      for (let at = next++; at < files.length; at = next++) found[at] = await this.#read(files[at] as Place)
    }
    await Promise.all(Array.from({ length: Math.min(PARALLEL, files.length) }, work))
    const known = new Set(files.map(({ file }) => file))
    for (const file of this.#kept.keys()) if (!known.has(file)) this.#kept.delete(file)
    this.#findings = {
      candidates: found.filter((one): one is Candidate => 'spec' in one),
      broken: [...broken, ...found.filter((one): one is Broken => !('spec' in one))],
    }
    this.#lookedAt = began
    return this.#findings
  }

  /** SKILL.md files by path; folders without one only group others. */
  async #skillFiles(): Promise<{ readonly files: readonly Place[]; readonly broken: Broken[] }> {
    const { folder: top, root, tier } = this.source
    const files: Place[] = []
    const listed = new Set<string>()
    const broken: Broken[] = []
    // Resolved lazily: links are rare, and lookups happen on every tool call.
    let real: Promise<string> | undefined
    const realRoot = () => {
      real ??= realpath(root).catch(() => root)
      return real
    }
    const walk = async (folder: string, depth: number): Promise<void> => {
      if (files.length >= MAX_SKILLS) return
      listed.add(folder)
      const { entries, file, isManaged } = await this.#listing(folder)
      if (file !== undefined && folder !== top) {
        files.push({ file: path.join(folder, file), isManaged })
        return
      }
      for (const entry of depth > 0 ? entries : []) {
        const at = path.join(folder, entry.name)
        try {
          if (entry.isSymbolicLink()) {
            const target = await realpath(at)
            if (!(await stat(target)).isDirectory()) continue
            if (!isInside(target, await realRoot())) throw new Error(`it is a link that leads out of ${root}`)
          } else if (!entry.isDirectory()) continue
          await walk(at, depth - 1)
        } catch (error) {
          broken.push({ path: at, tier, message: messageOf(error) })
        }
      }
    }
    await walk(top, MAX_DEPTH).catch(error => {
      if (error.code !== 'ENOENT' && error.code !== 'ENOTDIR')
        broken.push({ path: top, tier, message: messageOf(error) })
    })
    for (const folder of this.#listings.keys()) if (!listed.has(folder)) this.#listings.delete(folder)
    if (files.length >= MAX_SKILLS)
      broken.push({ path: top, tier, message: `more than ${MAX_SKILLS} skills; the others are ignored` })
    return { files, broken }
  }

  /** The content of a folder; read again only when the folder has changed: most folders never do. */
  async #listing(folder: string): Promise<Listing> {
    const stamp = this.#stampOf(await this.#look(folder))
    const before = this.#listings.get(folder)
    if (before && stamp !== '' && before.stamp === stamp) return before
    const entries = await readdir(folder, { withFileTypes: true })
    const names = entries.map(({ name }) => name)
    const shownEntries = entries.filter(({ name }) => !name.startsWith('.'))
    const listing = {
      stamp,
      entries: shownEntries.sort((a, b) => (a.name < b.name ? -1 : 1)),
      file: skillFileIn(names),
      isManaged: names.some(name => name.toLowerCase() === META_FILE),
    }
    this.#listings.set(folder, listing)
    return listing
  }

  /**
   * The state of a file or folder. Synchronous for the home, which is on a local disk: the call takes less time than a trip
   * through the thread pool. A workspace may be on a slow network file system.
   */
  async #look(file: string): Promise<Stats> {
    if (this.source.ofWorkspace) return stat(file)
    if (++this.#looks % LOOKS_PER_TURN === 0) await turn()
    return statSync(file)
  }

  async #read({ file, isManaged: mayBeManaged }: Place): Promise<Candidate | Broken> {
    const folder = path.dirname(file)
    try {
      const metaFile = path.join(folder, META_FILE)
      const isManaged = this.source.tier === 'user' && mayBeManaged && (await isThere(metaFile))
      const tree = isManaged ? await listTree(folder) : undefined
      const stampOf = async (one: string) => this.#stampOf(await this.#look(one))
      const stamp = [await stampOf(file), isManaged && (await stampOf(metaFile))]
      const whole = stamp.includes('') ? '' : [...stamp, tree && stampOfTree(tree)].join('\n')
      const before = this.#kept.get(file)
      if (before && whole !== '' && before.stamp === whole) return before.found
      const found = await this.#parsed(folder, file, tree)
      this.#kept.set(file, { stamp: whole, found })
      return found
    } catch (error) {
      this.#kept.delete(file)
      return { path: file, tier: this.source.tier, message: messageOf(error) }
    }
  }

  async #parsed(
    folder: string,
    file: string,
    tree: Awaited<ReturnType<typeof listTree>> | undefined,
  ): Promise<Candidate> {
    const bytes = await readRegularFile(file, { maxBytes: MAX_SKILL_BYTES, links: 'refuse' })
    if (!bytes) throw new Error('it no longer exists')
    const text = decoded(bytes)
    const { spec, unknown, remarks } = parseSkillFile(text, path.basename(folder))
    const odd = unknown.map(key => ({
      pattern: 'unknown_field',
      severity: 'info' as const,
      message: `${SKILL_FILE}: the field ${shown(key, 64)} is not known and has no effect`,
    }))
    const read = [...remarks.map(message => ({ pattern: 'read_as_text', severity: 'warning' as const, message }))]
    const { ofWorkspace } = this.source
    const common = { name: spec.name, path: file, dir: folder, ofWorkspace, spec }
    if (!tree) {
      const hidden = scan(text, SKILL_FILE)
      const failure = refusal(hidden)
      return { ...common, tier: this.source.tier, warnings: [...hidden, ...read, ...odd], ...(failure && { failure }) }
    }
    const { meta, failure, warnings } = await verify(folder, tree, spec.name)
    return {
      ...common,
      tier: 'marketplace',
      warnings: [...warnings, ...read, ...odd],
      ...(meta && { meta }),
      ...(failure && { failure }),
    }
  }

  /** Empty while the file is so new that a further change might not show. */
  #stampOf({ dev, ino, nlink, size, mtimeMs, ctimeMs }: Stats): string {
    return this.clock.now() - ctimeMs > TICK_MS ? [dev, ino, nlink, size, mtimeMs, ctimeMs].join(':') : ''
  }
}

/** Compares an installed skill with its installation, and scans all its texts. */
async function verify(folder: string, tree: Awaited<ReturnType<typeof listTree>>, name: string) {
  const warnings: ScanWarning[] = []
  let meta: SkillMeta | undefined
  try {
    meta = await readMeta(folder)
    if (!meta) throw new Error(`${META_FILE} was removed while it was read`)
  } catch (error) {
    return { warnings, failure: { code: 'provenance_invalid', message: `${META_FILE}: ${messageOf(error)}` } }
  }
  const actual = await hashTree(folder, tree, (at, bytes) => {
    const text = textOf(bytes)
    if (text !== undefined) warnings.push(...scan(text, at))
  })
  if (actual !== meta.hash) {
    const message = 'its files have changed since it was installed'
    return {
      meta,
      warnings,
      failure: { code: 'hash_mismatch', message, actual_hash: actual, expected_hash: meta.hash },
    }
  }
  if (meta.name !== name) {
    const message = `SKILL.md says name ${name}, but ${meta.name} was installed`
    return { meta, warnings, failure: { code: 'name_mismatch', message } }
  }
  return { meta, warnings, failure: refusal(warnings) }
}

const isThere = (file: string) =>
  stat(file).then(
    () => true,
    () => false,
  )

function decoded(bytes: Uint8Array): string {
  const text = textOf(bytes)
  if (text === undefined) throw new Error('it is not valid UTF-8')
  return text
}

/** Undefined for bytes that are not UTF-8. */
export function textOf(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return undefined
  }
}
