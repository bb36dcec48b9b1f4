import { existsSync } from 'node:fs'
import { type KernelStart, type Plugin, surfaceOf, within } from '../../../../kernel/plugin.js'
import { installedTier, isUnderWay } from '../../installer/api.js'
import { Catalog } from '../folders/catalog.js'
import { disableNotes } from '../folders/disable-notes.js'
import { keyOf } from '../identity.js'
import type { SourceTier } from '../manifest/manifest.js'
import { DevTable, isEnabled } from '../tables.js'
import { admit } from './admission.js'
import { checkAgreed } from './agreement.js'
import { type BootCode, BootCodes } from './boot-code.js'
import { CodeCache, importPlugin } from './code.js'
import type { Where } from './error-location.js'
import { guarded, overheard } from './in-process.js'
import { LogRing } from './log-ring.js'

/** Milliseconds that a boot waits for one of them. A slower extension is loaded after the boot, like any other. */
const READ_MS = 5000

/**
 * Reads the extensions that replace plugins before the plugins are applied: `replacements` of `createKernel`. An
 * unreadable one is left to the extensions plugin, which finds and reports the same problem.
 * @returns the plugins, and one that passes the started code to the extensions plugin
 */
export async function readReplacements(names: readonly string[], start: KernelStart): Promise<readonly Plugin[]> {
  const read = names.map(name => within(start.clock, READ_MS, readOne(name, start)).catch(() => undefined))
  const bootCodes = (await Promise.all(read)).filter(one => one !== undefined)
  if (bootCodes.length === 0) return []
  const { contribute } = surfaceOf<undefined>()
  const surface = { registries: [contribute(BootCodes, () => bootCodes)] }
  const replacementsPlugin: Plugin = {
    name: 'replacements',
    version: start.version,
    requires: {},
    surface,
    apply: () => undefined,
  }
  return [
    ...bootCodes.map(({ plugin, where, log }) => guarded(start.clock, overheard(plugin, log), where)),
    replacementsPlugin,
  ]
}

async function readOne(name: string, start: KernelStart): Promise<(BootCode & { where: Where }) | undefined> {
  const { home, clock, ids, db, version } = start
  const location = locationOf(name, start)
  const found = location && (await new Catalog(NO_CACHE, () => clock.now(), version).read(location.folder))
  if (!location || !found) return undefined
  const manifest = await admit(found, { name, tier: location.tier, daemonVersion: version })
  if (location.agreed !== undefined) checkAgreed(manifest, [location.agreed], '')
  if (manifest.main === undefined || manifest.replaces === undefined || isUnderWay(db, name)) return undefined
  const code = new CodeCache(home.path('cache', 'extensions'))
  const { hash, folder } = await code.copy(name, found.root, ids.hex(16), manifest.apiVersion)
  const log = new LogRing(ids.hex(16), clock)
  const where = { folder, root: found.root }
  return { name, key: location.key, hash, log, ...(await importPlugin(folder, manifest)), where }
}

const NO_CACHE = { read: async () => undefined, write: async () => {} }

/** Place of the enabled extension of a name: the installed one takes precedence over links. */
function locationOf(
  name: string,
  { home, db }: KernelStart,
): { key: string; folder: string; tier: SourceTier; agreed?: string } | undefined {
  const tables = new Set(
    db.all<{ name: string }>("SELECT name FROM sqlite_master WHERE type = 'table'").map(t => t.name),
  )
  const noted = disableNotes(home.root)
  const isOn = (key: string) => !noted.includes(key) && (!tables.has('extensions_flag') || isEnabled(db, key))
  const folder = home.path('extensions', name)
  if (existsSync(folder) && isOn(name)) {
    return { key: name, folder, tier: installedTier(db, name) ?? 'user' }
  }
  const links = tables.has('extensions_dev_network') ? new DevTable(db).list() : []
  const link = links.find(one => one.name === name && isOn(keyOf(name, one)))
  return link && { key: keyOf(name, link), folder: link.origin, tier: 'workspace', agreed: link.agreed }
}
