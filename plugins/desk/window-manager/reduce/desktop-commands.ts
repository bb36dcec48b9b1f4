import { command, placeholder } from '../../../../kernel/kit/commands/command-line.js'
import { type Desktop, type Split, WHOLE } from '../document/document.js'
import { desktopAt } from '../document/lookup.js'
import type { Mint } from '../document/tree.js'
import { refuse } from '../refusal.js'
import type { Reducer } from './reducer.js'

export const create: Reducer<'desktop.create'> = ({ desktops }, { id, name, purpose, order }, { mint }) => {
  const desktop: Desktop = {
    id: id ?? mint('dsk'),
    name: name ?? freeName(desktops),
    order: 0,
    purpose: purpose ?? 'standard',
    floating: [],
    groups: [],
  }
  desktops.splice(order ?? desktops.length, 0, desktop)
  return { show: desktop.id }
}

function freeName(desktops: readonly Desktop[]): string {
  let number = desktops.length + 1
  while (desktops.some(desktop => desktop.name === `Desktop ${number}`)) number++
  return `Desktop ${number}`
}

export const update: Reducer<'desktop.update'> = (draft, { desktop_id, name, purpose }) => {
  const desktop = desktopAt(draft, desktop_id)
  if (name !== undefined) desktop.name = name
  if (purpose !== undefined) desktop.purpose = purpose
  return undefined
}

export const reorder: Reducer<'desktop.reorder'> = (draft, { desktop_id, order }) => {
  const desktop = desktopAt(draft, desktop_id)
  draft.desktops = draft.desktops.filter(other => other !== desktop)
  draft.desktops.splice(order, 0, desktop)
  return undefined
}

export const show: Reducer<'desktop.switch'> = (draft, { desktop_id }) => ({ show: desktopAt(draft, desktop_id).id })

export const remove: Reducer<'desktop.delete'> = (draft, { desktop_id, move_to }, { mint }) => {
  const desktop = desktopAt(draft, desktop_id)
  if (draft.desktops.length === 1) refuse('final_desktop', 'the last desktop cannot be deleted')
  const isEmpty = desktop.groups.length === 0 && desktop.floating.length === 0
  if (move_to === undefined && !isEmpty)
    refuse('destination_required', `desktop ${desktop.name} has windows; set move_to to the desktop that takes them`, {
      next: command('desktop delete', desktop.id, '--move-to', placeholder('desktop')),
    })
  if (move_to !== undefined) {
    const target = desktopAt(draft, move_to)
    if (target === desktop) refuse('destination_required', 'move_to must be another desktop')
    takeOver(target, desktop, mint)
  }
  draft.desktops = draft.desktops.filter(other => other !== desktop)
  return undefined
}

/** Keeps the trees of tiled windows: groups that would overlap are merged into one split with equal shares. */
function takeOver(target: Desktop, from: Desktop, mint: Mint): void {
  target.floating.push(...from.floating)
  const groups = [...target.groups, ...from.groups]
  if (from.groups.length === 0 || target.groups.length === 0) {
    target.groups = groups
    return
  }
  const children = groups.map(group => group.root)
  const weights = groups.map(() => 1 / groups.length)
  const root: Split = { id: mint('nd'), kind: 'split', axis: 'horizontal', children, weights }
  target.groups = [{ id: mint('grp'), frame: { ...WHOLE }, root }]
}
