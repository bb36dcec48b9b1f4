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

/** The installer as the routes see it: wire forms in, wire forms out. */
export class InstallDoor {
  /** @param show an extension as lists show it */
  constructor(
    private readonly installer: Installer,
    private readonly show: (name: string) => Extension,
  ) {}

  async install(body: InstallExtensionBody, actor: Actor): Promise<Extension> {
    const { name } = await this.installer.install(requestOf(body), actor)
    return this.show(name)
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

  async remove(name: string, purge: boolean, actor: Actor): Promise<RemoveExtensionReply['extension']> {
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
