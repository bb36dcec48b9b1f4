import { existsSync } from 'node:fs'
import path from 'node:path'
import { command } from '../../../../kernel/kit/commands/command-line.js'
import { messageOf } from '../../../../kernel/plugin.js'
import { ExtensionErrors } from '../errors.js'
import type { Found } from '../folders/catalog.js'
import { isAtLeast, type Manifest, type SourceTier } from '../manifest/manifest.js'
import { resolveInside } from '../manifest/paths.js'
import { sourceOfMain } from './left-out.js'

/** Context of the checks before an extension is loaded. */
export interface Admission {
  /** Name of its folder. */
  readonly name: string
  readonly tier: SourceTier
  /** Version of the daemon. */
  readonly daemonVersion: string
}

/** @throws Fault of the manifest, or another reason that prevents a load */
export async function admit(found: Found, { name, tier, daemonVersion }: Admission): Promise<Manifest> {
  if ('fault' in found) throw found.fault
  const { manifest, root } = found
  if (manifest.name !== name) {
    throw ExtensionErrors.extension_name_mismatch(`the folder ${name} contains an extension named ${manifest.name}`, {
      next: `mv ${path.join(path.dirname(root), name)} ${path.join(path.dirname(root), manifest.name)}`,
    })
  }
  const { min_svc_version: floor } = manifest
  if (floor !== undefined && !isAtLeast(daemonVersion, floor)) {
    throw ExtensionErrors.extension_version_unsupported(`${name} requires svc ${floor}, this is ${daemonVersion}`)
  }
  const refused = refusal(manifest, tier)
  if (refused !== undefined) throw ExtensionErrors.extension_tier_refused(`${name} ${refused}`)
  const { main, resources, subprocess } = manifest
  const { skills, agents, bundles } = resources
  const lists = Object.entries({ main: main === undefined ? [] : [main], skills, agents, bundles })
  const paths = lists.flatMap(([key, all]) =>
    all.map((relative, at) => [key === 'main' ? key : `resources.${key}.${at}`, relative] as const),
  )
  if (subprocess?.command.includes('/')) paths.push(['subprocess.command', subprocess.command])
  if (main !== undefined && !existsSync(path.join(root, main)) && (await sourceOfMain(root, manifest)) !== undefined) {
    const text = `${main} is missing in ${root}; svc extension build bundles it from TypeScript`
    throw ExtensionErrors.extension_not_built(text, { next: command('extension build', root) })
  }
  for (const [key, relative] of paths) {
    await resolveInside(root, relative).catch(error => {
      const next = `edit the manifest in ${root}`
      throw ExtensionErrors.extension_path_escape(`${key}: ${messageOf(error)}`, { next })
    })
  }
  return manifest
}

function refusal({ main }: Manifest, tier: SourceTier): string | undefined {
  if (main !== undefined && tier === 'marketplace') {
    return 'has code for the daemon itself (main), which is not loaded from a marketplace; it may have a [subprocess]'
  }
  return undefined
}
