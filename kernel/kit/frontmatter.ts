import { isMap, isScalar, LineCounter, parseDocument } from 'yaml'
import { messageOf } from '../contract/errors.js'

/** A file split at the lines `---` around its head; `bodyLine` is the line of the file in which the body begins, from 1. */
export type SplitFile = { readonly head: string; readonly body: string; readonly bodyLine: number }

const OPENING = /^---[ \t]*(?:\r?\n|$)/
const HEAD = /^---[ \t]*\r?\n(?:([\s\S]*?)\r?\n)?---[ \t]*(?:\r?\n|$)/

/** Splits a file. `none`: it does not begin with a line `---`; `open`: no second one closes the head. */
export function splitFrontmatter(file: string): SplitFile | 'none' | 'open' {
  if (!OPENING.test(file)) return 'none'
  const match = HEAD.exec(file)
  if (!match) return 'open'
  return { head: match[1] ?? '', body: file.slice(match[0].length), bodyLine: match[0].split('\n').length }
}

/** A place in a file; both from 1. */
export type Position = { readonly line: number; readonly column: number }

/** A field of a head and its position. */
export interface HeadField {
  readonly value: unknown
  /** Position of the field's name. */
  readonly position: Position
  /** Position of the value at a path below the field; that of the field when there is none. */
  positionOf(path: readonly (string | number)[]): Position
}

/** Why a head cannot be read: one line, with its place in the file. */
export class FrontmatterError extends Error {
  constructor(
    message: string,
    readonly position: Position,
  ) {
    super(message.split('\n', 1)[0])
  }
}

/**
 * The fields of a head in YAML 1.2, by name; an empty head has none. Aliases are limited.
 * @throws FrontmatterError for invalid YAML, a duplicate field, or a head that is not a mapping
 */
export function parseHead(head: string): ReadonlyMap<string, HeadField> {
  const lineCounter = new LineCounter()
  // The head begins in the second line of the file.
  const at = (offset: number): Position => {
    const { line, col } = lineCounter.linePos(offset)
    return { line: line + 1, column: col }
  }
  try {
    const document = parseDocument(head, { lineCounter, prettyErrors: false, uniqueKeys: true, version: '1.2' })
    const [error] = document.errors
    if (error) throw new FrontmatterError(`not valid YAML: ${error.message}`, at(error.pos[0]))
    if (document.contents === null) return new Map()
    if (!isMap(document.contents)) throw new FrontmatterError('the frontmatter is not a mapping', at(0))
    // Nested aliases would otherwise expand exponentially.
    const plain = document.toJS({ maxAliasCount: 100 }) as Record<string, unknown>
    return new Map(
      document.contents.items.map(({ key }) => {
        const name = isScalar(key) ? String(key.value) : ''
        const offset = isScalar(key) ? (key.range?.[0] ?? 0) : 0
        const positionOf = (path: readonly (string | number)[]) => {
          const node = document.getIn([name, ...path], true) as { range?: readonly number[] } | undefined
          return at(node?.range?.[0] ?? offset)
        }
        return [name, { value: plain[name], position: at(offset), positionOf }]
      }),
    )
  } catch (error) {
    throw error instanceof FrontmatterError ? error : new FrontmatterError(`not valid YAML: ${messageOf(error)}`, at(0))
  }
}

/** The plain values of a head, by name. */
export function headValues(fields: ReadonlyMap<string, HeadField>): Record<string, unknown> {
  return Object.fromEntries([...fields].map(([name, { value }]) => [name, value]))
}
