import { command } from '../../../../kernel/kit/commands/command-line.js'
import { refuse } from '../refusal.js'
import { type Desktop, type Window, type WindowDocument, windowOf } from './document.js'

/** The desktop with this id, or a Refusal. */
export function desktopAt(document: WindowDocument, id: string): Desktop {
  const found = document.desktops.find(desktop => desktop.id === id)
  return found ?? refuse('desktop_not_found', `there is no desktop ${id}`, { next: command('desktop list') })
}

/** The window with this id and its desktop, or a Refusal. */
export function windowAt(document: WindowDocument, id: string): { window: Window; desktop: Desktop } {
  const window = windowOf(document, id)
  if (!window) return refuse('window_not_found', `there is no window ${id}`, { next: command('desktop list') })
  return { window, desktop: desktopAt(document, window.desktop_id) }
}

/** The named desktop, else the client's current desktop, else the first. */
export function chosenDesktop(document: WindowDocument, id: string | undefined, active: string | undefined): Desktop {
  if (id !== undefined) return desktopAt(document, id)
  const [first] = document.desktops
  const shown = document.desktops.find(desktop => desktop.id === active) ?? first
  return shown ?? refuse('desktop_not_found', 'there is no desktop')
}
