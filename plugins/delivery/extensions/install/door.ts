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

/** What the door asks of the service that runs the extensions. */
export interface DoorHost {
  /** An extension as lists show it. */
  readonly show: (name: string) => Extension
  /** The link of a developer that is meant; undefined when it is what is installed. @throws Fault `extension_not_found` */
  readonly linked: (name: string, workspace: string | undefined) => Promise<Instance | undefined>
  /** Links of that name. */
  readonly links: (name: string) => readonly Instance[]
  /** Starts the process of an installed extension again. */
  readonly restart: (name: string) => Promise<void>
  /** Forgets a link; where it leads. */
  readonly unlink: (instance: Instance, actor: Actor) => Promise<string | undefined>
}

/** The installer as the routes see it: wire forms in, wire forms out. */
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
    // Its files may be the same, and what it is granted is not.
    if (updated.status === 'updated' && body.allow) await this.host.restart(name).catch(() => {})
    return updateToWire(updated, this.installer.folderOf(name))
  }

  async updateAll(body: UpdateAllBody, actor: Actor): Promise<UpdateAllReply> {
    return batchToWire(await this.installer.updateAll(updateRequestOf(body), actor))
  }

  /** A linked one is linked no longer, and its folder and what is installed stay. */
  async remove(
    name: string,
    { purge = false, workspace }: RemoveExtensionQuery,
    actor: Actor,
  ): Promise<RemoveExtensionReply['extension']> {
    const linked = await this.host.linked(name, workspace).catch(error => {
      // What was left by one that was removed can be purged later.
      if (!purge || workspace !== undefined || faultOf(error).code !== 'extension_not_found') throw error
    })
    const origin = linked && (await this.host.unlink(linked, actor))
    if (origin !== undefined) return { name, path: origin, status: 'unlinked' }
    const [link] = purge ? this.host.links(name) : []
    if (link) {
      const place = placeOf(link)
      throw ExtensionErrors.extension_in_use(`${link.key} is linked and has the same tables`, {
        next: command('extension remove', name, '--workspace', place),
      })
    }
    await this.installer.remove(name, { purge }, actor)
    return { name, path: this.installer.folderOf(name), status: purge ? 'purged' : 'removed' }
  }

  /** Of what was installed. */
  provenance(name: string): Provenance | undefined {
    const found = this.installer.provenance(name)
    return found && provenanceToWire(found)
  }

  verify(name: string, actor: Actor): Promise<VerifyExtensionReply> {
    return this.installer.verify(name, actor)
  }
}
