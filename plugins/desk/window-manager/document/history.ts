import type { Arrangement, HistoryEntry, WindowManagerActor } from '../../../../schemas/window-manager.js'
import type { CommandId } from '../reduce/command-table.js'
import type { Desktop, Window, WindowDocument } from './document.js'

const equal = (a: unknown, b: unknown) => JSON.stringify(a) === JSON.stringify(b)

/** The desktops and windows that differ between two documents, and the overrides, for each side. */
export function difference(a: WindowDocument, b: WindowDocument): { before: Arrangement; after: Arrangement } {
  const oneSided = (mine: WindowDocument, other: WindowDocument): Arrangement => {
    const theirs = new Map(other.desktops.map(desktop => [desktop.id, desktop]))
    return {
      desktops: mine.desktops.filter(desktop => !equal(desktop, theirs.get(desktop.id))),
      windows: Object.fromEntries(
        Object.entries(mine.windows).filter(
          ([id, window]) => !Object.hasOwn(other.windows, id) || !equal(window, other.windows[id]),
        ),
      ),
      overrides: mine.overrides,
    }
  }
  return { before: oneSided(a, b), after: oneSided(b, a) }
}

/** The document with one side of a difference replaced by the other. */
function patched(document: WindowDocument, from: Arrangement, to: Arrangement): WindowDocument {
  const gone = new Set([...from.desktops, ...to.desktops].map(desktop => desktop.id))
  const desktops = [...document.desktops.filter(({ id }) => !gone.has(id)), ...(to.desktops as Desktop[])]
  const windows = Object.fromEntries(
    Object.entries(document.windows).filter(
      ([id]) => !Object.hasOwn(from.windows, id) || Object.hasOwn(to.windows, id),
    ),
  )
  return {
    ...document,
    desktops: desktops.sort((a, b) => a.order - b.order),
    windows: { ...windows, ...(to.windows as Record<string, Window>) },
    overrides: to.overrides,
  }
}

/** The history entry of a command. */
export function entryOf(
  commandId: CommandId,
  actor: WindowManagerActor,
  createdAt: string,
  before: WindowDocument,
  after: WindowDocument,
  origin?: string,
): HistoryEntry {
  return {
    actor,
    command_id: commandId,
    created_at: createdAt,
    ...(origin === undefined ? {} : { origin }),
    ...difference(before, after),
  }
}

/**
 * Undoes or redoes an entry; also returns the entry for the opposite history. That entry is derived from the documents, so that
 * focus changes in between are restored too.
 */
export function stepped(
  document: WindowDocument,
  entry: HistoryEntry,
  way: 'undo' | 'redo',
): { document: WindowDocument; entry: HistoryEntry } {
  const [from, to] = way === 'undo' ? [entry.after, entry.before] : [entry.before, entry.after]
  const next = patched(document, from, to)
  const { before, after } = way === 'undo' ? difference(next, document) : difference(document, next)
  return { document: next, entry: { ...entry, before, after } }
}
