import path from 'node:path'
import { type Disk, systemDisk } from '../../../kernel/platform.js'
import { messageOf } from '../../../kernel/plugin.js'
import type { Checked } from './api.js'
import { journalsBelow } from './catalog-guard.js'
import { openJournal } from './open.js'

const BATCH = 1000
/** Handle of a file that would be created. */
const NO_FILE = -1

/** See `verifyJournals` of the plugin's interface. */
export async function verifyJournals(root: string): Promise<Checked[]> {
  const checked: Checked[] = []
  for (const folder of await journalsBelow(root)) checked.push(await verifyJournal(root, folder))
  return checked
}

async function verifyJournal(root: string, dir: string): Promise<Checked> {
  const name = path.relative(root, dir)
  let entries = 0
  try {
    const journal = await openJournal({ dir, disk: readOnlyDisk() })
    for (let next = journal.first; next <= journal.last; next += BATCH)
      entries += (await journal.read(next, BATCH)).length
    await journal.close()
    return { kind: 'journal', name, entries, problems: [] }
  } catch (error) {
    return { kind: 'journal', name, entries, problems: [messageOf(error)] }
  }
}

/** The system's disk without writes: they succeed without effect, so that a torn tail is skipped and stays for the next start. */
function readOnlyDisk(): Disk {
  const disk = systemDisk()
  const nothing = async () => {}
  return {
    ...disk,
    open: (file, mode) => (mode === 'read' || mode === 'update' ? disk.open(file, 'read') : NO_FILE),
    close: handle => (handle === NO_FILE ? undefined : disk.close(handle)),
    pwrite: (_handle, bytes) => bytes.length,
    truncate: nothing,
    fsync: nothing,
    rename: nothing,
    unlink: nothing,
    mkdir: nothing,
    fsyncDir: nothing,
  }
}
