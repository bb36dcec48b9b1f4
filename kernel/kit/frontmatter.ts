import { isMap, isScalar, LineCounter, parseDocument } from 'yaml'
import { messageOf } from '../contract/errors.js'

/** A file taken apart at the lines `---` around its head; the body begins in line `bodyLine` of the file, from 1. */
export type SplitFile = { readonly head: string; readonly body: string; readonly bodyLine: number }

const OPENING = /^---[ \t]*(?:\r?\n|$)/
const HEAD = /^---[ \t]*\r?\n(?:([\s\S]*?)\r?\n)?---[ \t]*(?:\r?\n|$)/

/** Takes a file apart. `none`: it does not begin with a line `---`; `open`: no second one closes the head. */
export function splitFrontmatter(file: string): SplitFile | 'none' | 'open' {
  if (!OPENING.test(file)) return 'none'
  const match = HEAD.exec(file)
  if (!match) return 'open'
  return { head: match[1] ?? '', body: file.slice(match[0].length), bodyLine: match[0].split('\n').length }
}

/** A place in a file; both from 1. */
export type Position = { readonly line: number; readonly column: number }

/** A field of a head and where it stands. */
export interface HeadField {
  readonly value: unknown
  /** Of its name. */
  readonly position: Position
  /** Where the value at a path below it stands; the field's own place when nothing is there. */
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
 * The fields of a head in YAML 1.2, by name; an empty head has none. Aliases are bounded.
 * @throws FrontmatterError when it is not valid YAML, names a field twice, or is no mapping of names to values
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
    if (!isMap(document.contents)) throw new FrontmatterError('the head is no mapping of names to values', at(0))
    // Without a bound, aliases of aliases grow without one.
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
