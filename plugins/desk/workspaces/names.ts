import path from 'node:path'
import { clip, shown } from '../../../kernel/kit/text.js'
import { WorkspaceErrors } from './api.js'

const NAME_MAX = 128
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is refused
const REFUSED = /[/\\\u0000-\u001f\u007f-\u009f]/

/** Returns a trimmed name. Throws `workspace_invalid`: a name must be distinguishable from an id and a path. */
export function checkName(text: string): string {
  const name = text.trim()
  const wrong = nameFault(name)
  if (wrong !== undefined) throw WorkspaceErrors.workspace_invalid(`the name ${shown(name)} ${wrong}`)
  return name
}

/** Returns a trimmed short text, such as the name of an agent; empty means unset. Throws `workspace_invalid`. */
export function checkLabel(text: string, member: string): string {
  const label = text.trim()
  if (label.length > NAME_MAX || REFUSED.test(label)) {
    throw WorkspaceErrors.workspace_invalid(
      `${member} ${shown(label)} is longer than ${NAME_MAX} characters or has control characters`,
    )
  }
  return label
}

/** The name of a folder, with a suffix such as `-2` if it is taken. */
export function freeName(root: string, taken: (name: string) => boolean): string {
  const cleaned = clip(path.basename(root).replace(new RegExp(REFUSED, 'g'), '').trim(), NAME_MAX - 8)
  const base = nameFault(cleaned) === undefined ? cleaned : 'workspace'
  let name = base
  for (let at = 2; taken(name); at++) name = `${base}-${at}`
  return name
}

function nameFault(name: string): string | undefined {
  if (name.length === 0 || name.length > NAME_MAX) return `must have 1 to ${NAME_MAX} characters`
  if (REFUSED.test(name)) return 'must not have slashes or control characters'
  if (name === '.' || name === '..') return 'is a path'
  if (/^ws_[0-9a-f]{16}$/.test(name)) return 'looks like an id'
  return undefined
}
