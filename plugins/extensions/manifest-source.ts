import { getNodePath, type Node, type ParseError, parseTree, printParseErrorCode } from 'jsonc-parser'
import { parse, TomlError } from 'smol-toml'
import type { Fault } from '../../kernel/plugin.js'
import { ExtensionErrors } from './errors.js'

/** A manifest as text and as value, able to say on which line a key stands. */
export interface ManifestSource {
  readonly value: Record<string, unknown>
  /** The error of a key, given as path from the root; a key that is not there is shown at the nearest one above it. */
  fault(keys: readonly string[], what: string): Fault
}

type LineOf = (keys: readonly string[]) => number

/** Parses the text of a `.toml` or `.json` file. @throws Fault `extension_manifest_invalid` with the line */
export function readSource(text: string, path: string): ManifestSource {
  const bad = (line: number, keys: readonly string[], what: string): Fault => {
    const key = keys.join('.')
    return ExtensionErrors.extension_manifest_invalid(`${path}:${line}: ${key === '' ? what : `${key}: ${what}`}`, {
      details: { file: path, line: String(line), ...(key === '' ? {} : { key }) },
      next: `edit ${path}, line ${line}`,
    })
  }
  const { value, lineOf } = path.endsWith('.json') ? readJson(text, bad) : readToml(text, bad)
  return {
    value,
    fault: (keys, what) => {
      // Core keys are written at the root or in [extension]; whoever asks knows them at the root.
      const line = lineOf(keys) || lineOf(['extension', ...keys]) || nearest(lineOf, keys)
      return bad(line, keys, what)
    },
  }
}

function nearest(lineOf: LineOf, keys: readonly string[]): number {
  for (let length = keys.length - 1; length > 0; length--) {
    const line = lineOf(keys.slice(0, length))
    if (line > 0) return line
  }
  return 1
}

type Bad = (line: number, keys: readonly string[], what: string) => Fault
type Read = { readonly value: Record<string, unknown>; readonly lineOf: LineOf }

function readJson(text: string, bad: Bad): Read {
  const errors: ParseError[] = []
  const root = parseTree(text, errors, { disallowComments: true })
  const lineAt = (offset: number) => text.slice(0, offset).split('\n').length
  const [error] = errors
  if (error) throw bad(lineAt(error.offset), [], `not valid JSON: ${printParseErrorCode(error.error)}`)
  if (root?.type !== 'object') throw bad(1, [], 'a manifest is a JSON object')
  const lines = new Map<string, number>()
  const visit = (node: Node): void => {
    const [key] = node.type === 'property' ? (node.children ?? []) : []
    if (key) {
      const keys = getNodePath(key).map(String)
      const id = JSON.stringify(keys)
      if (lines.has(id)) throw bad(lineAt(node.offset), keys, 'it stands here a second time')
      lines.set(id, lineAt(node.offset))
    }
    for (const child of node.children ?? []) visit(child)
  }
  visit(root)
  return { value: JSON.parse(text) as Record<string, unknown>, lineOf: keys => lines.get(JSON.stringify(keys)) ?? 0 }
}

function readToml(text: string, bad: Bad): Read {
  try {
    const value = parse(text, { maxDepth: 32 }) as Record<string, unknown>
    return { value, lineOf: tomlLines(text) }
  } catch (error) {
    if (!(error instanceof TomlError)) throw error
    throw bad(error.line, [], `not valid TOML: ${error.message.split('\n')[0]}`)
  }
}

/**
 * Lines of keys in valid TOML. The parser does not tell them; this sees headers and `key =` at the beginnings of lines,
 * which is how they are written, and leads to the table where a key stands within an inline one.
 */
function tomlLines(text: string): LineOf {
  const lines = new Map<string, number>()
  const counts = new Map<string, number>()
  let table: string[] = []
  const note = (keys: readonly string[], line: number) => {
    const id = JSON.stringify(keys)
    if (!lines.has(id)) lines.set(id, line)
  }
  text.split('\n').forEach((content, index) => {
    const header = /^\s*(\[\[?)\s*([^\]]+?)\s*\]/.exec(content)
    if (header?.[2] !== undefined) {
      table = split(header[2])
      if (header[1] === '[[') {
        const id = JSON.stringify(table)
        const count = counts.get(id) ?? 0
        counts.set(id, count + 1)
        table = [...table, String(count)]
      }
      note(table, index + 1)
      return
    }
    const key = /^\s*([A-Za-z0-9_."'-]+)\s*=/.exec(content)?.[1]
    if (key !== undefined) note([...table, ...split(key)], index + 1)
  })
  return keys => lines.get(JSON.stringify(keys)) ?? 0
}

const split = (dotted: string): string[] =>
  [...dotted.matchAll(/"([^"]*)"|'([^']*)'|([A-Za-z0-9_-]+)/g)].map(([, a, b, c]) => a ?? b ?? c ?? '')
