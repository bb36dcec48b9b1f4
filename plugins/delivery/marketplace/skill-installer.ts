import { createHash } from 'node:crypto'
import { command } from '../../../kernel/kit/commands/command-line.js'
import { Serial } from '../../../kernel/kit/serial.js'
import { shown } from '../../../kernel/kit/text.js'
import { type Actor, Fault, iso, KernelErrors, messageOf } from '../../../kernel/plugin.js'
import type {
  SkillInstallResult,
  SkillRemoveResult,
  SkillUpdateResult,
  UpdateSkillsBody,
} from '../../../schemas/marketplace.js'
import type { ManagedSkill } from '../../agents/skills/api.js'
import { DownloadError, isNewer, readArchive } from '../extensions/api.js'
import { MarketplaceErrors, SkillManaged } from './api.js'
import { absent, type Copy, entryOf } from './catalog.js'
import { type Entry, newestOf, type SkillVersion } from './feed.js'
import { type Base, fetchFrom } from './fetch.js'
import type { K } from './needs.js'
import { AuthorPins } from './signatures.js'
import { SkillStore } from './skill-store.js'

/** Bytes of the archive of a skill. */
const ARCHIVE_BYTES = 8 * 1024 * 1024

/** The part of the catalog that the installer uses. */
export interface SkillCatalog {
  /** @throws Fault `marketplace_not_configured`, `marketplace_unavailable` */
  readonly skills: () => Promise<Copy>
  readonly base: () => Base
  readonly registry: () => string
  readonly allowsUnverified: () => boolean
  readonly timeoutMs: () => number
}

/** Installs, updates and removes skills of the catalog, one at a time. */
export class SkillInstaller {
  readonly pins: AuthorPins
  readonly #store: SkillStore
  readonly #serial = new Serial()

  constructor(
    private readonly kernel: K,
    private readonly catalog: SkillCatalog,
  ) {
    this.pins = new AuthorPins(kernel.db)
    this.#store = new SkillStore(kernel.needs.skills.folder, () => kernel.ids.hex(6))
  }

  recover(): Promise<void> {
    return this.#serial.run(() => this.#store.recover())
  }

  install(slug: string, version: string | undefined, actor: Actor): Promise<SkillInstallResult> {
    return this.#serial.run(async () => {
      const copy = await this.catalog.skills()
      const entry = entryOf(copy, slug)
      if (!entry) throw absent(copy, 'skill', slug)
      const managed = await this.#managed()
      const before = managed.find(({ meta }) => meta.slug === entry.id)
      const chosen = versionOf(entry, version)
      // A skill that was modified locally is installed again: nothing else restores it.
      if (before && before.failure === undefined && before.meta.version === chosen.version)
        return resultOf(before, 'unchanged')
      return resultOf(await this.#take(entry, chosen, managed, actor), before ? 'updated' : 'installed')
    })
  }

  /** Reports a failed update and continues with the next one. @throws Fault `skill_not_managed` */
  update(
    { name, all = false, check_only: isCheck = false }: UpdateSkillsBody,
    actor: Actor,
  ): Promise<SkillUpdateResult[]> {
    if (name !== undefined && all) throw KernelErrors.invalid_request('name, all: give one of them, not both')
    return this.#serial.run(async () => {
      const managed = await this.#managed()
      const chosen = managed.filter(skill => name === undefined || skill.name === name || skill.meta.slug === name)
      if (name !== undefined && chosen.length === 0) throw notManaged(name)
      // Without a name or `all`, available updates are only reported.
      const isDry = isCheck || (name === undefined && !all)
      const copy = chosen.length > 0 ? await this.catalog.skills() : undefined
      const results: SkillUpdateResult[] = []
      for (const skill of chosen) results.push(await this.#updateOne(skill, copy as Copy, managed, isDry, actor))
      return results
    })
  }

  /** Also forgets its author, so that another one can publish under that name. @throws Fault `skill_not_managed` */
  remove(name: string, actor: Actor): Promise<SkillRemoveResult> {
    return this.#serial.run(async () => {
      const found = (await this.#managed()).find(skill => skill.name === name || skill.meta.slug === name)
      if (!found) throw notManaged(name)
      const { slug } = found.meta
      await this.#store.remove(found.dir)
      this.kernel.needs.skills.changed()
      await this.kernel.db.tx(t => {
        this.pins.forget(t, slug)
        const payload = { name: found.name, slug, what: 'removed' as const }
        this.kernel.needs.events.emit(t, SkillManaged, payload, { actor, subject: found.name })
      })
      return { name: found.name, slug, path: found.dir, status: 'removed' }
    })
  }

  async #updateOne(
    skill: ManagedSkill,
    copy: Copy,
    managed: readonly ManagedSkill[],
    isDry: boolean,
    actor: Actor,
  ): Promise<SkillUpdateResult> {
    const { meta, dir, name } = skill
    const entry = copy.feed.entries.find(({ id }) => id === meta.slug)
    const latest = entry && newestOf(entry)
    const about = {
      name,
      slug: meta.slug,
      path: dir,
      ...(meta.version !== undefined && { current_version: meta.version }),
      ...(latest && { latest_version: latest.version }),
    }
    if (!entry || !latest) return { ...about, status: 'not_in_catalog' }
    // An outdated feed has a valid signature too, so an update never goes back.
    if (meta.version !== undefined && !isNewer(latest.version, meta.version)) {
      if (skill.failure === undefined) return { ...about, status: 'current' }
      const again = command('skill install', meta.slug)
      return { ...about, status: 'failed', error: `${skill.failure}. Install it again, without the changes: ${again}` }
    }
    if (isDry) return { ...about, status: 'update_available' }
    try {
      await this.#take(entry, latest, managed, actor)
      return { ...about, status: 'updated' }
    } catch (error) {
      if (!(error instanceof Fault)) throw error
      return { ...about, status: 'failed', error: error.message }
    }
  }

  /** Fetches, checks and writes one version. Nothing is written before all checks passed. */
  async #take(
    entry: Entry,
    version: SkillVersion,
    managed: readonly ManagedSkill[],
    actor: Actor,
  ): Promise<ManagedSkill> {
    const { clock, db, needs } = this.kernel
    const bytes = await this.#fetch(version)
    const sha256 = createHash('sha256').update(bytes).digest('hex')
    if (version.sha256 === undefined && !this.catalog.allowsUnverified())
      throw MarketplaceErrors.skill_unverified(`${entry.id} ${version.version} has no checksum`)
    if (version.sha256 !== undefined && version.sha256.toLowerCase() !== sha256)
      throw MarketplaceErrors.skill_checksum_mismatch(
        `the archive of ${entry.id} ${version.version} has the SHA-256 ${sha256}, the catalog says ${version.sha256}`,
        { details: { expected: version.sha256, actual: sha256 } },
      )
    this.pins.check(entry, version, sha256)
    const tree = await readArchive(bytes, path => path === 'SKILL.md').catch(refused)
    const judged = await judge(() => needs.skills.judge(tree))
    if (judged.name !== entry.name)
      throw MarketplaceErrors.skill_content_refused(
        `the catalog calls it ${shown(entry.name)}, its SKILL.md ${shown(judged.name)}`,
      )
    const mine = managed.find(({ name }) => name === judged.name)
    if (mine ? mine.meta.slug !== entry.id : await this.#store.isThere(judged.name))
      throw MarketplaceErrors.skill_exists(
        `${mine ? `the skill ${mine.name} came from ${mine.meta.slug}` : this.#store.pathOf(judged.name)} is in the way`,
      )
    const meta = {
      name: judged.name,
      slug: entry.id,
      registry: this.catalog.registry(),
      version: version.version,
      hash: judged.hash,
      installed_at: iso(clock.now()),
      ...(entry.author !== undefined && { author: entry.author }),
      ...(entry.public_key !== undefined && { public_key: entry.public_key }),
    }
    // The author is pinned before the skill is written: a crash in between leaves a pin too many, never one too few.
    await db.tx(t => this.pins.pin(t, entry, clock.now()))
    const dir = await this.#store.put(judged.name, tree, meta)
    needs.skills.changed()
    const what = mine ? ('updated' as const) : ('installed' as const)
    const payload = { name: judged.name, slug: entry.id, what, version: version.version, hash: judged.hash }
    await db.tx(t => needs.events.emit(t, SkillManaged, payload, { actor, subject: judged.name }))
    return { name: judged.name, dir, meta }
  }

  async #fetch({ archive }: SkillVersion): Promise<Buffer> {
    const { catalog } = this
    const options = { clock: this.kernel.clock, maxBytes: ARCHIVE_BYTES, timeoutMs: catalog.timeoutMs() }
    try {
      return await fetchFrom(catalog.base(), archive, options)
    } catch (error) {
      if (!(error instanceof DownloadError)) throw error
      if (error.problem === 'too_large' || error.problem === 'insecure')
        throw MarketplaceErrors.skill_content_refused(error.message, { details: { reason: error.problem } })
      throw MarketplaceErrors.skill_archive_unavailable(error.message, { details: { reason: error.problem } })
    }
  }

  #managed(): Promise<readonly ManagedSkill[]> {
    this.kernel.needs.skills.changed()
    return this.kernel.needs.skills.managed()
  }
}

function versionOf(entry: Entry, wanted: string | undefined): SkillVersion {
  const found = wanted === undefined ? newestOf(entry) : entry.versions.find(({ version }) => version === wanted)
  if (found) return found
  const all = entry.versions.map(({ version }) => version).join(', ')
  throw MarketplaceErrors.skill_version_unknown(
    wanted === undefined
      ? `${entry.id} has no version to install`
      : `${entry.id} has ${all || 'no version'}, not ${shown(wanted)}`,
  )
}

const resultOf = ({ name, dir, meta }: ManagedSkill, status: string): SkillInstallResult => ({
  name,
  slug: meta.slug,
  registry: meta.registry,
  hash: meta.hash,
  path: dir,
  status,
  ...(meta.version !== undefined && { version: meta.version }),
})

const notManaged = (name: string) => MarketplaceErrors.skill_not_managed(`no skill ${shown(name)} was installed`)

function refused(error: unknown): never {
  if (!(error instanceof Fault)) throw error
  throw MarketplaceErrors.skill_content_refused(error.message, {
    details: { reason: error.details?.reason ?? error.code },
  })
}

async function judge<T>(work: () => T): Promise<T> {
  try {
    return work()
  } catch (error) {
    throw MarketplaceErrors.skill_content_refused(messageOf(error))
  }
}
