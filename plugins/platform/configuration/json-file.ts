import { isDeepStrictEqual } from 'node:util'
import type { Node, ParseError } from 'jsonc-parser'
import { locate, removeAt, setAt } from './edit-json.js'
import { ConfigErrors } from './errors.js'
import { membersOf, placeOf, plain, treeOf } from './jsonc.js'
import { syntaxProblem } from './syntax.js'

/** A change of a JSON file: the value at a path; without a value the member is removed. */
export interface JsonChange {
  readonly keys: readonly string[]
  readonly value?: unknown
}

/**
 * The object in a JSON file with comments; empty for an empty file.
 * @param where names the file in messages
 * @throws Fault `config_file_invalid` with file, line and column
 */
export function readJson(text: string, where: string): Readonly<Record<string, unknown>> {
  const tree = objectOf(text, where)
  return tree ? (plain(tree) as Record<string, unknown>) : {}
}

/**
 * Changes the text of a JSON file; comments, order and layout stay. Every writer of a JSON configuration file must use this: an
 * edit of a text that does not parse would put the change in a guessed place.
 * @param where names the file in messages
 * @throws Fault `config_file_invalid` with file, line and column; `config_ambiguous` for a duplicate member
 */
export function editJson(text: string, where: string, changes: readonly JsonChange[]): string {
  let after = text
  for (const { keys, value } of changes) {
    checkWay(objectOf(after, where), keys, after, where)
    after = value === undefined ? removeAt(after, keys) : setAt(after, keys, value)
    const tree = objectOf(after, where)
    const found = tree && locate(tree, keys).member
    if (!isDeepStrictEqual(found && plain(found.value), value))
      throw ConfigErrors.config_ambiguous(`${where} has ${keys.join('.')} more than once; keep one of them`)
  }
  return after
}

function objectOf(text: string, where: string): Node | undefined {
  if (text.trim() === '') return undefined
  const errors: ParseError[] = []
  const tree = treeOf(text, errors)
  const broken = syntaxProblem(text, errors)
  if (broken) throw invalid(text, broken.offset, where, `not valid JSON: ${broken.text}`)
  if (tree?.type !== 'object') throw invalid(text, tree?.offset ?? 0, where, 'a JSON object is expected')
  return tree
}

/** A member on the path that is not an object is an error: a second member of its name would hide it. */
function checkWay(tree: Node | undefined, keys: readonly string[], text: string, where: string): void {
  let node = tree
  for (const [n, key] of keys.slice(0, -1).entries()) {
    node = node && memberOf(node, key)
    if (node && node.type !== 'object')
      throw invalid(text, node.offset, where, `${keys.slice(0, n + 1).join('.')}: an object is expected`)
  }
}

/** The later of two members with one name counts. */
const memberOf = (node: Node, name: string) => membersOf(node).findLast(({ key }) => key === name)?.value

function invalid(text: string, offset: number, where: string, what: string) {
  const { line, column } = placeOf(text, offset)
  return ConfigErrors.config_file_invalid(`${where}:${line}:${column}: ${what}`, {
    next: `correct line ${line} of ${where} and try again`,
  })
}
