import type { Actor } from '../../../kernel/plugin.js'
import type {
  InstallExtensionBody,
  InstallPreview,
  PreviewInstallBody,
  UpdateAllBody,
  UpdateAllReply,
  UpdateExtensionBody,
  VerifyExtensionReply,
} from '../../../schemas/extensions/install.js'
import type { Extension, Provenance, RemoveExtensionReply, UpdateExtensionReply } from '../../../schemas/extensions.js'
import type { Installer } from './installer.js'
import { batchToWire, previewToWire, provenanceToWire, requestOf, updateRequestOf, updateToWire } from './wire.js'

/** What the door asks of the service that runs the extensions. */
export interface DoorHost {
  /** An extension as lists show it. */
  readonly show: (name: string) => Extension
  /** Forgets the link of a developer; where it leads, or undefined when there is none. */
  readonly unlink: (name: string, actor: Actor) => Promise<string | undefined>
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
    return updateToWire(updated, this.installer.folderOf(name))
  }

  async updateAll(body: UpdateAllBody, actor: Actor): Promise<UpdateAllReply> {
    return batchToWire(await this.installer.updateAll(updateRequestOf(body), actor))
  }

  /** A linked one is linked no longer, and its folder and what is installed stay. */
  async remove(name: string, purge: boolean, actor: Actor): Promise<RemoveExtensionReply['extension']> {
    const origin = await this.host.unlink(name, actor)
    if (origin !== undefined) return { name, path: origin, status: 'unlinked' }
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
