import { command } from '../../../kernel/kit/commands/command-line.js'
import { Serial } from '../../../kernel/kit/serial.js'
import { clip, shown } from '../../../kernel/kit/text.js'
import { type Actor, faultOf, messageOf } from '../../../kernel/plugin.js'
import type { InstallPreview } from '../../../schemas/extensions/install.js'
import type * as wire from '../../../schemas/extensions.js'
import { type Consentable, consentableOf, isNewer } from '../extensions/api.js'
import type { Installations, InstallTarget } from './api.js'
import { checkAgreed } from './consent.js'
import { InstallErrors } from './errors.js'
import { ExtensionDigestVerified, ExtensionInstallFailed, ExtensionUpdateFailed } from './events.js'
import { type Files, isThere, systemFiles, writeTree } from './files.js'
import { freshIn, Ledger } from './ledger.js'
import type { K } from './needs.js'
import { previewOf } from './preview.js'
import { installs, type Provenance, provenanceFrom } from './provenance.js'
import type { BatchItem, InstallRequest, Updated, UpdateRequest } from './requests.js'
import type { Candidate } from './source/candidate.js'
import { readFolder } from './source/folder.js'
import { addressOf, type Source, sourceOf, tierOf, withoutSecrets, withVersion } from './source/source.js'
import { treeDigest } from './source/tree.js'
import { type Judged, SourceReader } from './source-reader.js'
import { decide } from './trust.js'
import { provenanceToWire } from './wire.js'

/** What the installer works with: the target, the settings, and the disk. A test leaves parts of the target out. */
export interface InstallerOptions extends Partial<InstallTarget> {
  readonly brought: InstallTarget['brought']
  /** The policy, `extensions.trust.allow_unverified`. */
  readonly allowUnverified: () => boolean
  /** Names of `extensions.trust.unsandboxed`. */
  readonly unsandboxed: () => readonly string[]
  readonly files?: Files
}

/**
 * Installs, updates and removes extensions below `$SVC_HOME/extensions/`. Files are checked and staged in
 * `.staging/<id>`; then an intent is written, and one rename applies it. After a crash at any point, the next `start`
 * rolls every intent forward and removes staged files without one.
 */
export class Installer implements Installations {
  readonly #files: Files
  readonly #ledger: Ledger
  readonly #reader: SourceReader
  /** Serializes changes of the folders. */
  readonly #changes = new Serial()

  constructor(
    private readonly kernel: K,
    private readonly options: InstallerOptions,
  ) {
    this.#files = options.files ?? systemFiles
    this.#ledger = new Ledger(kernel, this.#files, options)
    const { brought } = options
    const authorOf = (name: string) => this.provenance(name)?.authorKey
    this.#reader = new SourceReader(kernel, this.#files, { staging: this.#ledger.staging, brought, authorOf })
  }

  start(): Promise<void> {
    return this.#ledger.start()
  }

  conclude(): Promise<void> {
    return this.#changes.run(async () => {
      for (const name of await this.#ledger.conclude()) await this.options.placed?.(name)
    })
  }

  provenance(name: string): Provenance | undefined {
    const intent = this.#ledger.pending(name)
    return intent?.op === 'place' ? intent.provenance : this.#placed(name)
  }

  shown(name: string): wire.Provenance | undefined {
    const found = this.provenance(name)
    return found && provenanceToWire(found)
  }

  isPlacing(name: string): boolean {
    return this.#ledger.pending(name)?.op === 'place'
  }

  /** Folder of an extension of that name, existing or not. */
  folderOf(name: string): string {
    return this.#ledger.folderOf(name)
  }

  /** Provenance of all installed extensions, by name; extensions copied by hand have none. */
  installed(): Provenance[] {
    return installs.all(this.kernel.db, {}, 'ORDER BY name').map(({ provenance }) => provenance)
  }

  /** Preview of {@link install}. Throws the same faults, except for missing consent, which the preview shows. */
  preview(request: InstallRequest): Promise<InstallPreview> {
    return this.#reader.read(request, (source, candidate) => this.#previewOf(source, candidate, request))
  }

  /** Preview of {@link update}. */
  async previewUpdate(name: string, request: UpdateRequest): Promise<InstallPreview> {
    const source = await nextSourceOf(this.#installedOf(name), request)
    return this.#reader.read({ ...request, source }, (_, candidate) => this.#previewOf(source, candidate, request))
  }

  /**
   * Installs a new extension.
   * @throws Fault of `InstallErrors`; those of a manifest; `extension_installed` (409)
   */
  install(request: InstallRequest, actor: Actor): Promise<Provenance> {
    return this.#telling(
      ExtensionInstallFailed,
      { source: withoutSecrets(request.path ?? request.slug ?? '') },
      actor,
      () =>
        this.#reader.read(request, (source, candidate) => {
          const provenance = this.#provenanceOf(source, candidate, request, actor)
          checkAgreed(provenance, this.#placed(provenance.name), request.consentDigest)
          return this.#changes.run(async () => {
            const { name } = provenance
            const before = this.#placed(name)
            const isSame = before && addressOf(before.source) === addressOf(source)
            const isNext =
              before?.source.kind === 'local_path' && source.kind === 'local_path' && source.form === 'archive'
            if (await isThere(this.folderOf(name)))
              throw InstallErrors.extension_installed(
                `extension ${name} is already installed, in ${this.folderOf(name)}${isSame ? '' : OTHER_SOURCE}`,
                {
                  next: isSame
                    ? command('extension update', name)
                    : isNext
                      ? command('extension update', name, '--archive', source.path)
                      : command('extension remove', name),
                },
              )
            return this.#install(candidate, provenance, false, actor)
          })
        }),
    )
  }

  /**
   * Updates an installed extension from its source, or from the archive that the request names; its flag stays.
   * @param checkOnly reports an available version and changes nothing
   * @throws Fault like {@link install}; `extension_not_installed` (404), `extension_not_updatable`,
   *   `extension_changed_name`
   */
  update(name: string, request: UpdateRequest, actor: Actor, checkOnly = false): Promise<Updated> {
    const work = () => this.#update(name, request, actor, checkOnly)
    return checkOnly ? work() : this.#telling(ExtensionUpdateFailed, { name, source: '' }, actor, work)
  }

  /** Updates all extensions one after the other, by name; stops at the first failure and keeps the updates before it. */
  async updateAll(request: Pick<UpdateRequest, 'allowUnverified'>, actor: Actor): Promise<BatchItem[]> {
    const items: BatchItem[] = []
    for (const { name } of this.installed()) {
      try {
        items.push({ name, ...(await this.update(name, request, actor)) })
      } catch (error) {
        items.push({ name, status: 'failed', fault: faultOf(error) })
        break
      }
    }
    return items
  }

  /**
   * Removes an extension, including one copied by hand. Its records and tables stay until they are purged.
   * @throws Fault `extension_not_installed` (404), and the objections of dependents (409)
   */
  remove(name: string, { purge = false }: { purge?: boolean }, actor: Actor): Promise<void> {
    return this.#changes.run(async () => {
      if (!isName(name) || !((await isThere(this.folderOf(name))) || (purge && this.options.hasLeft?.(name))))
        throw InstallErrors.extension_not_installed(
          `extension ${shown(name)} ${purge ? 'left no records' : 'is not installed'}`,
        )
      const refusal = await this.options.disabling?.(name)
      if (refusal !== undefined) throw refusal
      await this.#ledger.decide({ op: 'remove', id: this.kernel.ids.id('ext'), name, purge }, actor, async () => {})
      await this.options.placed?.(name)
    })
  }

  /** Compares the files with those that were installed; emits the result as an event. */
  async verify(name: string, actor: Actor): Promise<{ expected: string; actual: string; matches: boolean }> {
    const expected = this.#installedOf(name).treeDigest
    const actual = await readFolder(this.folderOf(name)).then(treeDigest, error => messageOf(error))
    const found = { expected, actual, matches: actual === expected }
    await this.kernel.db.tx(t =>
      this.kernel.needs.events.emit(t, ExtensionDigestVerified, { name, ...found }, { actor, subject: name }),
    )
    return found
  }

  async #previewOf(source: Source, candidate: Judged, request: UpdateRequest): Promise<InstallPreview> {
    const { name } = candidate.manifest
    const installed = this.provenance(name)
    const takenByHand = !installed && (await isThere(this.folderOf(name)))
    const unsandboxed = this.options.unsandboxed()
    const consents = consentsOf(candidate, installed, request)
    return previewOf(candidate, installed, {
      ...this.#trustRequest(source, candidate, request),
      ...{ takenByHand, unsandboxed, consents },
    })
  }

  async #update(name: string, request: UpdateRequest, actor: Actor, checkOnly: boolean): Promise<Updated> {
    const previous = this.#installedOf(name)
    const wanted = await nextSourceOf(previous, request)
    return this.#reader.read({ ...request, source: wanted }, async (source, candidate) => {
      if (candidate.manifest.name !== name)
        throw InstallErrors.extension_changed_name(
          `${addressOf(source)} now contains the extension ${candidate.manifest.name}, not ${name}; nothing was changed`,
          { next: command('extension remove', name) },
        )
      const consents = consentsOf(candidate, previous, request)
      const same = hasNothingNew(candidate, previous) && consents.length === (previous.consents?.length ?? 0)
      const provenance = this.#provenanceOf(source, candidate, request, actor, previous)
      if (checkOnly || same) return { status: same ? 'up_to_date' : 'available', previous, current: provenance }
      checkAgreed(provenance, previous, request.consentDigest)
      const current = await this.#changes.run(async () => {
        // Another request may have removed or updated it while this one read the source.
        if (this.#installedOf(name).treeDigest !== previous.treeDigest)
          throw InstallErrors.extension_installed(`extension ${name} was changed meanwhile; try again`)
        return this.#install(candidate, provenance, true, actor)
      })
      return { status: 'updated', previous, current }
    })
  }

  #trustRequest(source: Source, { verified }: Candidate, { allowUnverified = false }: UpdateRequest) {
    return { source, verified, consent: allowUnverified, policy: this.options.allowUnverified() }
  }

  #provenanceOf(
    source: Source,
    candidate: Judged,
    request: UpdateRequest,
    actor: Actor,
    previous?: Provenance,
  ): Provenance {
    const decision = decide(this.#trustRequest(source, candidate, request))
    const unverified = request.allowUnverified ?? false
    const consents = consentsOf(candidate, previous, request)
    return provenanceFrom(candidate, candidate.brings, decision, unverified, this.kernel.clock.now(), actor, consents)
  }

  /** Stages the files, then writes the intent and carries it out. */
  async #install(candidate: Candidate, provenance: Provenance, replaces: boolean, actor: Actor): Promise<Provenance> {
    const { name } = provenance
    const ran = replaces && this.options.runs?.(name) === true
    const intent = { op: 'place', id: this.kernel.ids.id('ext'), name, provenance, replaces, ran } as const
    try {
      await this.#ledger.decide(intent, actor, folder => writeTree(this.#files, candidate.tree, freshIn(folder)))
    } finally {
      await this.options.placed?.(name)
    }
    return provenance
  }

  /** Emits an event for a failure and rethrows it. */
  async #telling<T>(
    type: typeof ExtensionInstallFailed,
    what: { name?: string; source: string },
    actor: Actor,
    work: () => Promise<T>,
  ): Promise<T> {
    try {
      return await work()
    } catch (error) {
      const fault = faultOf(error)
      const payload = { ...what, code: fault.code, error: clip(fault.message, 2000) }
      await this.kernel.db.tx(t => this.kernel.needs.events.emit(t, type, payload, { actor, subject: what.name }))
      throw error
    }
  }

  #placed(name: string): Provenance | undefined {
    return installs.get(this.kernel.db, { name })?.provenance
  }

  #installedOf(name: string): Provenance {
    const found = this.#placed(name)
    if (found !== undefined) return found
    throw InstallErrors.extension_not_installed(`extension ${shown(name)} was not installed by svc`)
  }
}

/** Consents that are requested by the manifest and granted by this request or an earlier one. */
function consentsOf(
  { manifest, source }: Candidate,
  previous: Pick<Provenance, 'consents'> | undefined,
  { allow = [] }: UpdateRequest,
): Consentable[] {
  if (tierOf(source) !== 'marketplace') return []
  return consentableOf(manifest).filter(one => allow.includes(one) || previous?.consents?.includes(one))
}

/**
 * The source of the next version: the one of the installed version, or an archive that the request names, as each
 * archive is a file of its own. An extension from a catalog or repository is updated from there only.
 * @throws Fault `extension_not_updatable`
 */
async function nextSourceOf({ name, source: before }: Provenance, { path, version }: UpdateRequest): Promise<Source> {
  if (path === undefined) return withVersion(before, version)
  const source = await sourceOf({ source: 'local_path', path, version })
  if (source.kind === 'local_path' && source.form === 'archive' && before.kind === 'local_path') return source
  const why =
    before.kind === 'local_path'
      ? `${path} is a folder; the next version of ${name} is taken from an archive, or from ${addressOf(before)}`
      : `${name} came from ${addressOf(before)} and is updated only from there`
  throw InstallErrors.extension_not_updatable(why, { next: command('extension update', name) })
}

/** An update uses only the original source. */
const OTHER_SOURCE = ', from another source; remove it first (its records and tables are kept)'

function isName(name: string): boolean {
  return /^[a-z0-9][a-z0-9.-]{0,128}$/.test(name)
}

/**
 * Whether an update has nothing new: the same files, or no later version of a catalog, because an outdated catalog has
 * a valid signature too. A path, branch or commit that a person names may be older. The same files count as new if no
 * consent was stored for them.
 */
function hasNothingNew({ source, manifest, treeDigest }: Candidate, previous: Provenance): boolean {
  if (treeDigest === previous.treeDigest) return previous.brings !== undefined
  return source.kind === 'curated' && !isNewer(manifest.version, previous.version)
}
