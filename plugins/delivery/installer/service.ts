import { command } from '../../../kernel/kit/commands/command-line.js'
import { type Actor, KernelErrors } from '../../../kernel/plugin.js'
import type {
  InstallExtensionBody,
  InstallPreview,
  PreviewInstallBody,
  RemoveExtensionQuery,
  UpdateAllBody,
  UpdateAllReply,
  UpdateExtensionBody,
  VerifyExtensionReply,
} from '../../../schemas/extensions/install.js'
import type { Extension, RemoveExtensionReply, UpdateExtensionReply } from '../../../schemas/extensions.js'
import type { Installations, InstallerApi, InstallTarget } from './api.js'
import { Installer } from './installer.js'
import type { K } from './needs.js'
import { AllowUnverified, Unsandboxed } from './trust.js'
import { batchToWire, requestOf, updateRequestOf, updateToWire } from './wire.js'

/** The installer for the plugin that loads extensions, and for the routes: wire forms in and out. */
export class InstallerService implements InstallerApi {
  #opened: { readonly installer: Installer; readonly target: InstallTarget; readonly signal: AbortSignal } | undefined

  constructor(private readonly kernel: K) {}

  open(target: InstallTarget, signal: AbortSignal): Installations {
    const { config } = this.kernel
    const allowUnverified = () => config.get(AllowUnverified)
    const unsandboxed = () => config.get(Unsandboxed)
    const installer = new Installer({ ...this.kernel, db: target.db }, { ...target, allowUnverified, unsandboxed })
    this.#opened = { installer, target, signal }
    return installer
  }

  /** @throws Fault `unavailable` while nothing loads extensions */
  #use() {
    if (!this.#opened || this.#opened.signal.aborted)
      throw KernelErrors.unavailable('extensions cannot be changed while the plugin extensions does not run', {
        next: command('doctor'),
      })
    return this.#opened
  }

  async install(body: InstallExtensionBody, actor: Actor): Promise<Extension> {
    const { installer, target } = this.#use()
    const { name } = await installer.install(requestOf(body), actor)
    return target.show(name)
  }

  async preview({ name, ...body }: PreviewInstallBody): Promise<InstallPreview> {
    const { installer } = this.#use()
    if (name === undefined) return installer.preview(requestOf(body))
    return installer.previewUpdate(name, updateRequestOf(body))
  }

  async update(name: string, body: UpdateExtensionBody, actor: Actor): Promise<UpdateExtensionReply['update']> {
    const { installer, target } = this.#use()
    const updated = await installer.update(name, updateRequestOf(body), actor, body.check_only)
    // A consent can change the granted methods without changing any file.
    if (updated.status === 'updated' && body.allow) await target.restart(name).catch(() => {})
    return updateToWire(updated, installer.folderOf(name))
  }

  async updateAll(body: UpdateAllBody, actor: Actor): Promise<UpdateAllReply> {
    return batchToWire(await this.#use().installer.updateAll(updateRequestOf(body), actor))
  }

  /** Removes an extension or a link; a link's folder and the installed extension stay. */
  async remove(name: string, request: RemoveExtensionQuery, actor: Actor): Promise<RemoveExtensionReply['extension']> {
    const { installer, target } = this.#use()
    const origin = await target.unlink(name, request, actor)
    if (origin !== undefined) return { name, path: origin, status: 'unlinked' }
    const { purge = false } = request
    await installer.remove(name, { purge }, actor)
    return { name, path: installer.folderOf(name), status: purge ? 'purged' : 'removed' }
  }

  async verify(name: string, actor: Actor): Promise<VerifyExtensionReply> {
    return this.#use().installer.verify(name, actor)
  }
}
