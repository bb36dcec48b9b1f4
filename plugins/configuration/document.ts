import type { Node, ParseError } from 'jsonc-parser'
import * as v from 'valibot'
import { Fault, issueText, type Setting } from '../../kernel/plugin.js'
import { membersOf, placeOf, plain, syntaxText, treeOf } from './jsonc.js'
import type { ConfigText, Said } from './layers.js'

/** As large as a file may be. */
const MOST_CHARACTERS = 16 * 1024 * 1024

/**
 * Reads JSON with comments. Throws `config_invalid` naming line and key for a syntax error, an unknown key below an owned
 * section or a value that does not match. A section without any owner, and `plugins.<vendor>.<name>` of a drop-in that is not
 * loaded, are kept and reported. Into an overlay goes only what may be there.
 * @param where names the text in messages
 */
export function configText(text: string, where: string, known: readonly Setting[], isOverlay = false): ConfigText {
  const errors: ParseError[] = []
  const lineOf = (offset: number) => `${where}:${placeOf(text, offset).line}`
  const bad = (offset: number, what: string): Fault => {
    const place = lineOf(offset)
    return new Fault('config_invalid', 500, `${place}: ${what}`, {
      next: `edit ${place.replace(/:(\d+)$/, ', line $1')}`,
    })
  }
  if (text.length > MOST_CHARACTERS) throw bad(0, `more than ${MOST_CHARACTERS} characters`)
  const root = text.trim() === '' ? undefined : treeOf(text, errors)
  const first = errors[0]
  if (first) throw bad(first.offset, `column ${placeOf(text, first.offset).column}: ${syntaxText(first)}`)
  if (root && root.type !== 'object') throw bad(root.offset, 'the configuration is a JSON object')
  const byPath = new Map(known.map(entry => [entry.path, entry]))
  const sections = new Set(known.map(entry => entry.path.split('.')[0]))
  const said = new Map<string, Said>()
  const unowned: string[] = []
  const walk = (parent: Node, path: string) => {
    for (const { key, value, node } of membersOf(parent)) {
      const at = path === '' ? key : `${path}.${key}`
      const entry = byPath.get(at)
      if (entry) {
        if (isOverlay && !entry.overlay) throw bad(node.offset, `${at} has one value for the whole daemon`)
        const raw = plain(value)
        const decoded = v.safeParse(entry.schema, raw)
        if (!decoded.success) throw bad(value.offset, `${at}: ${issueText(decoded.issues[0])}`)
        said.set(at, { value: decoded.output, raw, where: lineOf(value.offset) })
        continue
      }
      const isBranch = known.some(other => other.path.startsWith(`${at}.`))
      if (value.type === 'object' && (isBranch || isVendor(path, key))) walk(value, at)
      else if (isBranch) throw bad(value.offset, `${at}: Expected an object`)
      else if (!sections.has(at.split('.')[0]) || isOfDropIn(path, key)) unowned.push(at)
      else throw bad(node.offset, `unknown key ${at}`)
    }
  }
  if (root) walk(root, '')
  return { said, unowned }
}

/** `plugins.<vendor>`, below which stand the names of its drop-ins. */
const isVendor = (path: string, key: string): boolean => path === 'plugins' && !key.includes('.')

/** `plugins.<vendor>.<name>`, in one key or in two: no other key below `plugins` has a dot. */
const isOfDropIn = (path: string, key: string): boolean =>
  path === 'plugins' ? key.includes('.') : /^plugins\.[^.]+$/.test(path)
