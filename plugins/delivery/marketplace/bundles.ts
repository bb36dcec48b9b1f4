import type { BundleCatalogReply } from '../../../schemas/bundles.js'
import type { MarketplaceDetail, MarketplaceEntry } from '../../../schemas/marketplace.js'
import type { K } from './needs.js'

type Bundle = BundleCatalogReply['bundles'][number]

/** Bundles of installed extensions, which have no feed. */
export async function bundleEntries(kernel: K): Promise<MarketplaceEntry[]> {
  return (await bundles(kernel)).map(bundle => toWire(bundle, kernel))
}

export async function bundleDetail(kernel: K, id: string): Promise<MarketplaceDetail | undefined> {
  const found = (await bundles(kernel)).find(bundle => idOf(bundle) === id)
  if (!found) return undefined
  return {
    entry: toWire(found, kernel),
    bundle: {
      extension_name: found.extension_name,
      profiles: (found.profiles ?? []).map(({ name, description, channels, ...counts }) => ({
        name,
        ...(description !== undefined && { description }),
        agents: counts.agent_count ?? 0,
        bridges: counts.bridge_count ?? 0,
        channels: channels?.length ?? 0,
        jobs: counts.job_count ?? 0,
        layouts: counts.layout_count ?? 0,
        triggers: counts.trigger_count ?? 0,
      })),
    },
  }
}

/** Readable, and safe in a URL; names of extensions and bundles have no colon. */
const idOf = ({ extension_name: extension, bundle_name: bundle }: Bundle) => `${extension}:${bundle}`

const bundles = async ({ needs }: K): Promise<readonly Bundle[]> => (await needs.bundles.current?.shown()) ?? []

function toWire(bundle: Bundle, { needs }: K): MarketplaceEntry {
  const version = needs.extensions.current?.installed().find(({ name }) => name === bundle.extension_name)?.version
  return {
    entry_id: idOf(bundle),
    kind: 'bundle',
    name: bundle.bundle_name,
    description: bundle.description ?? '',
    source: bundle.extension_name,
    installed: true,
    installed_name: bundle.bundle_name,
    update_available: false,
    ...(version !== undefined && { version, installed_version: version }),
  }
}
