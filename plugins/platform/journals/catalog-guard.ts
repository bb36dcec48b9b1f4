import { mkdir, readdir, rename, stat } from 'node:fs/promises'
import path from 'node:path'
import type { Starting } from '../../../kernel/platform.js'
import { Fault, iso } from '../../../kernel/plugin.js'

/** Depth of folders in a home that may contain a journal. */
const DEPTH = 2
/** Maximum number of journals that a message names. */
const NAMED = 3

/**
 * Refuses a home that has data but no database: the daemon would start as if the home were new and ignore its data. With
 * `newCatalog` the rest of the old database is put aside, in a folder with the time in its name; everything else stays.
 * @throws Fault `catalog_missing`, `catalog_present`
 */
export async function guardCatalog({ home: { root }, clock, log, newCatalog, ofCatalog }: Starting): Promise<void> {
  const files = (await readdir(root)).filter(name => /^svc\.db(-wal|-mark|-journal)?$/.test(name))
  const sizes = await Promise.all(files.map(async name => [name, (await stat(path.join(root, name))).size] as const))
  const parts = sizes.flatMap(([name, size]) => (size > 0 ? name : []))
  if (parts.includes('svc.db')) {
    if (newCatalog) throw present(root)
    return
  }
  const journals = (await journalsBelow(root)).map(folder => path.relative(root, folder))
  if (parts.length === 0 && journals.length === 0) return
  if (!newCatalog) throw missing(root, files.includes('svc.db'), [...parts, ...named(journals)])
  const aside = path.join(root, `catalog-${iso(clock.now()).replaceAll(':', '')}`)
  await mkdir(aside, { mode: 0o700 })
  for (const name of [...files, ...journals.filter(folder => ofCatalog.includes(folder))])
    await rename(path.join(root, name), path.join(aside, name))
  log.warn(`a new catalog was created; the files of the previous one are in ${aside}`)
}

function named(journals: readonly string[]): string[] {
  const more = journals.length - NAMED
  return [...journals.slice(0, NAMED).map(name => `${name}/`), ...(more > 0 ? [`${more} more journals`] : [])]
}

function missing(root: string, empty: boolean, found: readonly string[]): Fault {
  const text = `the catalog ${path.join(root, 'svc.db')} is ${empty ? 'empty' : 'missing'}, but the home holds data: ${found.join(', ')}`
  return new Fault('catalog_missing', 500, text, {
    next: 'restore svc.db from a backup (without the -wal and -mark beside it), or `svc daemon start --new-catalog`, which keeps all files',
  })
}

function present(root: string): Fault {
  const text = `the catalog ${path.join(root, 'svc.db')} exists: a new one would hide its contents`
  return new Fault('catalog_present', 500, text, {
    next: 'start without --new-catalog, or move svc.db, svc.db-wal and svc.db-mark away first',
  })
}

/** Folders in a home with a journal or remains of one. */
export async function journalsBelow(folder: string, depth = DEPTH): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true })
  const own = entries.some(({ name }) => name === 'journal.json' || /^events-\d+\.log$/.test(name)) ? [folder] : []
  // Data that was put aside with an old database no longer belongs to the home.
  const below = entries.filter(entry => depth > 0 && entry.isDirectory() && !/^(\.|catalog-)/.test(entry.name))
  return [...own, ...(await Promise.all(below.map(at => journalsBelow(path.join(folder, at.name), depth - 1)))).flat()]
}
