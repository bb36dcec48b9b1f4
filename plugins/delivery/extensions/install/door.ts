import { command } from '../../../../kernel/kit/commands/command-line.js'
import { type Actor, faultOf } from '../../../../kernel/plugin.js'
import type {
  InstallExtensionBody,
  InstallPreview,
  PreviewInstallBody,
  RemoveExtensionQuery,
  UpdateAllBody,
  UpdateAllReply,
  UpdateExtensionBody,
  VerifyExtensionReply,
} from '../../../../schemas/extensions/install.js'
import type {
  Extension,
  Provenance,
  RemoveExtensionReply,
  UpdateExtensionReply,
} from '../../../../schemas/extensions.js'
import { ExtensionErrors } from '../errors.js'
import { placeOf } from '../identity.js'
import type { Instance } from '../load/instance.js'
import type { Installer } from './installer.js'
import { batchToWire, previewToWire, provenanceToWire, requestOf, updateRequestOf, updateToWire } from './wire.js'

/** The part of the extensions service that the install routes use. */
export interface DoorHost {
  /** Wire form of an extension. */
  readonly show: (name: string) => Extension
  /**
   * The developer's link that a request refers to; undefined for the installed extension. @throws Fault
   * `extension_not_found`
   */
  readonly linked: (name: string, workspace: string | undefined) => Promise<Instance | undefined>
  /** Links of that name. */
  readonly links: (name: string) => readonly Instance[]
  /** Restarts the process of an installed extension. */
  readonly restart: (name: string) => Promise<void>
  /** Removes a link; returns its folder. */
  readonly unlink: (instance: Instance, actor: Actor) => Promise<string | undefined>
}

/** The installer for the routes: wire forms in and out. */
export class InstallDoor {
  constructor(
    private readonly installer: Installer,
    private readonly host: DoorHost,
  ) {}

  async install(body: InstallExtensionBody, actor: Actor): Promise<Extension> {
    const { name } = await this.installer.install(requestOf(body), actor)
    return this.host.show(name)
  }

  async preview({ name, ...body }: PreviewInstallBody): Promise<InstallPreview> {
    const { installer } = this
    return previewToWire(
      await (name === undefined
        ? installer.preview(requestOf(body))
        : installer.previewUpdate(name, updateRequestOf(body))),
    )
  }

  async update(name: string, body: UpdateExtensionBody, actor: Actor): Promise<UpdateExtensionReply['update']> {
    const updated = await this.installer.update(name, updateRequestOf(body), actor, body.check_only)
    // A consent can change the granted methods without changing any file.
    if (updated.status === 'updated' && body.allow) await this.host.restart(name).catch(() => {})
    return updateToWire(updated, this.installer.folderOf(name))
  }

  async updateAll(body: UpdateAllBody, actor: Actor): Promise<UpdateAllReply> {
    return batchToWire(await this.installer.updateAll(updateRequestOf(body), actor))
  }

  /** Removes an extension or a link; a link's folder and the installed extension stay. */
  async remove(
    name: string,
    { purge = false, workspace }: RemoveExtensionQuery,
    actor: Actor,
  ): Promise<RemoveExtensionReply['extension']> {
    const linked = await this.host.linked(name, workspace).catch(error => {
      // A purge also cleans up after an extension that was removed earlier.
      if (!purge || workspace !== undefined || faultOf(error).code !== 'extension_not_found') throw error
    })
    const origin = linked && (await this.host.unlink(linked, actor))
    if (origin !== undefined) return { name, path: origin, status: 'unlinked' }
    const [link] = purge ? this.host.links(name) : []
    if (link) {
      const target = placeOf(link)
      throw ExtensionErrors.extension_in_use(`${link.key} is linked and has the same tables`, {
        next: command('extension remove', name, '--workspace', target),
      })
    }
    await this.installer.remove(name, { purge }, actor)
    return { name, path: this.installer.folderOf(name), status: purge ? 'purged' : 'removed' }
  }

  /** Provenance of the installed extension. */
  provenance(name: string): Provenance | undefined {
    const found = this.installer.provenance(name)
    return found && provenanceToWire(found)
  }

  verify(name: string, actor: Actor): Promise<VerifyExtensionReply> {
    return this.installer.verify(name, actor)
  }
}
