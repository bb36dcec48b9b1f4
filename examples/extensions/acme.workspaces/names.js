import path from 'node:path'
import { WorkspaceErrors } from 'svc/plugins/workspaces'
import { directory, quoted } from './places.js'

const NAME_MAX = 128
const DIRECTORIES_MAX = 64
const ODD = /[/\\\p{Cc}]/u
const ID = /^ws_[0-9a-f]{16}$/

/** The name of a folder, or that with a number while somebody has it. */
export function freeName(rootDir, isTaken) {
  const cleaned = path.basename(rootDir).replace(new RegExp(ODD, 'gu'), '').trim()
  const base = wrongName(cleaned.slice(0, NAME_MAX - 8)) === undefined ? cleaned.slice(0, NAME_MAX - 8) : 'workspace'
  let name = base
  for (let at = 2; isTaken(name); at++) name = `${base}-${at}`
  return name
}

function wrongName(name) {
  if (name.length === 0 || name.length > NAME_MAX) return `must have 1 to ${NAME_MAX} characters`
  if (ODD.test(name)) return 'must not have slashes or control characters'
  return name === '.' || name === '..' || ID.test(name) ? 'looks like a path or an id' : undefined
}

export function checkedName(given) {
  const name = given.trim()
  const wrong = wrongName(name)
  if (wrong === undefined) return name
  throw WorkspaceErrors.workspace_invalid(`the name ${quoted(name)} ${wrong}`)
}

export function checkedLabel(given, what) {
  const label = given.trim()
  if (label.length <= NAME_MAX && !ODD.test(label)) return label
  throw WorkspaceErrors.workspace_invalid(`${what} ${quoted(label)} is too long or has odd characters`)
}

export async function directories(given, rootDir) {
  if (given.length > DIRECTORIES_MAX)
    throw WorkspaceErrors.workspace_invalid(`add_dirs has ${given.length} entries, at most ${DIRECTORIES_MAX}`)
  const found = new Set()
  for (const [at, text] of given.entries()) found.add(await directory(text, `add_dirs.${at}`))
  return [...found].filter(one => one !== rootDir)
}
