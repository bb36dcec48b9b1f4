import { getNodePath, type Node, type ParseError, parseTree, printParseErrorCode } from 'jsonc-parser'
import { parse, TomlError } from 'smol-toml'
import type { Fault } from '../../../../kernel/plugin.js'
import { ExtensionErrors } from '../errors.js'

/** A parsed manifest that knows the line of each key. */
export interface ManifestSource {
  readonly value: Record<string, unknown>
  /** The error of a key, given as path from the root; a missing key is reported at its nearest existing parent. */
  fault(keys: readonly string[], what: string): Fault
}

type LineOf = (keys: readonly string[]) => number
/** Creates the error of a line, from 1, and a key. */
type Bad = (line: number, keys: readonly string[], what: string) => Error
export type Read = { readonly value: Record<string, unknown>; readonly lineOf: LineOf }

/** Parses the text of a `.toml` or `.json` file. @throws Fault `extension_manifest_invalid` with the line */
export function readSource(text: string, path: string): ManifestSource {
  const bad = (line: number, keys: readonly string[], what: string): Fault => {
    const key = keys.join('.')
    return ExtensionErrors.extension_manifest_invalid(`${path}:${line}: ${key === '' ? what : `${key}: ${what}`}`, {
      details: { file: path, line: String(line), ...(key === '' ? {} : { key }) },
      next: `edit ${path}, line ${line}`,
    })
  }
  const { value, lineOf } = readLines(text, path, bad)
  // Core keys may be at the root or in [extension]; callers use the root path for both.
  return {
    value,
    fault: (keys, what) => bad(lineOf(keys) || lineOf(['extension', ...keys]) || nearest(lineOf, keys), keys, what),
  }
}

/** Parses any such file: its value and the lines of its keys, 0 for a missing key. @throws the error from `bad` */
export const readLines = (text: string, path: string, bad: Bad): Read =>
  path.endsWith('.json') ? readJson(text, bad) : readToml(text, bad)

/** Line of a key or its nearest existing parent. */
export const lineNear = ({ lineOf }: Read, keys: readonly string[]): number => lineOf(keys) || nearest(lineOf, keys)

function nearest(lineOf: LineOf, keys: readonly string[]): number {
  for (let length = keys.length - 1; length > 0; length--) {
    const line = lineOf(keys.slice(0, length))
    if (line > 0) return line
  }
  return 1
}

function readJson(text: string, bad: Bad): Read {
  try {
    return readTree(text, bad)
  } catch (error) {
    // The parser and the search for lines are recursive, so deep nesting overflows the stack.
    if (error instanceof RangeError) throw bad(1, [], 'it is nested too deeply')
    throw error
  }
}

function readTree(text: string, bad: Bad): Read {
  const errors: ParseError[] = []
  const root = parseTree(text, errors, { disallowComments: true })
  const lineAt = (offset: number) => text.slice(0, offset).split('\n').length
  const [error] = errors
  if (error) throw bad(lineAt(error.offset), [], `not valid JSON: ${printParseErrorCode(error.error)}`)
  if (root?.type !== 'object') throw bad(1, [], 'it is not a JSON object')
  const lines = new Map<string, number>()
  const visit = (node: Node): void => {
    const [key] = node.type === 'property' ? (node.children ?? []) : []
    if (key) {
      const keys = getNodePath(key).map(String)
      const id = JSON.stringify(keys)
      if (lines.has(id)) throw bad(lineAt(node.offset), keys, 'it occurs here a second time')
      lines.set(id, lineAt(node.offset))
    }
    if (node.type === 'array') {
      for (const item of node.children ?? [])
        lines.set(JSON.stringify(getNodePath(item).map(String)), lineAt(item.offset))
    }
    for (const child of node.children ?? []) visit(child)
  }
  visit(root)
  return {
    value: withoutNull(JSON.parse(text)) as Record<string, unknown>,
    lineOf: keys => lines.get(JSON.stringify(keys)) ?? 0,
  }
}

/** Removes null members, which some generators write for unset values. */
function withoutNull(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNull)
  if (typeof value !== 'object' || value === null) return value
  const said = Object.entries(value).filter(([, member]) => member !== null)
  return Object.fromEntries(said.map(([name, member]) => [name, withoutNull(member)]))
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
 * Lines of the keys of valid TOML. The parser does not provide them; this finds headers and `key =` at line starts, and
 * resolves a key in an inline table to that table's line.
 */
function tomlLines(text: string): LineOf {
  const lines = new Map<string, number>()
  /** Index of the last table so far, by the path of its array. */
  const last = new Map<string, number>()
  let table: string[] = []
  const note = (keys: readonly string[], line: number) => {
    const id = JSON.stringify(keys)
    if (!lines.has(id)) lines.set(id, line)
  }
  text.split('\n').forEach((content, index) => {
    const header = /^\s*(\[\[?)\s*([^\]]+?)\s*\]/.exec(content)
    if (header?.[2] !== undefined) {
      const names = split(header[2])
      table = []
      for (const [at, name] of names.entries()) {
        table.push(name)
        note(table, index + 1)
        const id = JSON.stringify(table)
        if (header[1] === '[[' && at === names.length - 1) last.set(id, (last.get(id) ?? -1) + 1)
        const count = last.get(id)
        if (count !== undefined) table.push(String(count))
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
