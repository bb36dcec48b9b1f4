import type { FeedKind } from '../../../schemas/marketplace.js'
import type { McpServerView } from '../../../schemas/settings/mcp-servers.js'
import type { K } from './needs.js'

/** The installed item of an entry. */
export interface InstalledThing {
  readonly name: string
  readonly version?: string
}

/** Installed items: skills by slug, extensions and MCP servers by name. */
export class Installed {
  constructor(private readonly kernel: K) {}

  async of(kind: FeedKind): Promise<ReadonlyMap<string, InstalledThing>> {
    const { skills, extensions } = this.kernel.needs
    switch (kind) {
      case 'skill':
        return new Map(
          (await skills.managed()).map(({ name, meta }) => [
            meta.slug,
            { name, ...(meta.version !== undefined && { version: meta.version }) },
          ]),
        )
      case 'extension':
        return new Map((extensions.current?.installed() ?? []).map(({ name, version }) => [name, { name, version }]))
      case 'mcp':
        return new Map((await this.#servers()).flatMap(namesOf))
    }
  }

  /** The configured servers; none without a plugin that lists them. */
  async #servers(): Promise<readonly McpServerView[]> {
    const reply = await this.kernel.needs.mcp.current?.list({})
    return reply?.mcp_servers ?? []
  }
}

/** A server is found by its name and, if created from an entry, by the entry's id. */
function namesOf({ name, catalog_entry: entry, catalog_version: version }: McpServerView) {
  const thing: InstalledThing = { name, ...(version !== undefined && { version }) }
  return (entry === undefined || entry === name ? [name] : [name, entry]).map(key => [key, thing] as const)
}
