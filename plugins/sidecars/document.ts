import { isMap, isScalar, LineCounter, type Pair, parseDocument } from 'yaml'
import { messageOf } from '../../kernel/plugin.js'
import type { PolicyDiagnostic } from '../../schemas/sessions.js'

/** Someplace in a file, both from 1. */
export interface Position {
  readonly line: number
  readonly column: number
}

/** A field of a head with where it stands. */
export interface Field {
  readonly value: unknown
  readonly position: Position
  /** Where the value of a path below it stands; the nearest that is known. */
  positionOf(path: readonly (string | number)[]): Position
}

/** A file with an optional head between two lines `---`, as far as it could be read. */
export interface SidecarDocument {
  readonly fields: ReadonlyMap<string, Field>
  /** Trimmed, line feeds only. */
  readonly body: string
  /** The line of the file in which {@link body} begins. */
  readonly bodyLine: number
  readonly problem?: { readonly message: string; readonly position: Position }
}

/** Collects what is wrong with one file. */
export class Findings {
  readonly all: PolicyDiagnostic[] = []

  /** @param prefix of every code; @param about members that all findings share */
  constructor(
    private readonly prefix: string,
    private readonly about: Pick<PolicyDiagnostic, 'owner_surface' | 'source_path'>,
  ) {}

  get valid(): boolean {
    return this.all.every(({ severity }) => severity !== 'error')
  }

  add(
    code: string,
    message: string,
    more: Partial<PolicyDiagnostic> & { readonly position?: Position | undefined } = {},
  ): void {
    const { position, ...rest } = more
    this.all.push({ code: `${this.prefix}${code}`, message, severity: 'error', ...rest, ...position, ...this.about })
  }
}

const HEAD = /^---[ \t]*\n(?:([\s\S]*?)\n)?---[ \t]*(?:\n|$)/
const START: Position = { line: 1, column: 1 }

/** Takes a file apart. Never throws: what cannot be read is its `problem`. */
export function parseSidecar(text: string): SidecarDocument {
  const whole = text.replace(/^\uFEFF/, '').replaceAll('\r\n', '\n')
  if (!/^---[ \t]*(?:\n|$)/.test(whole)) return { fields: new Map(), ...bodyOf(whole, 1) }
  const match = HEAD.exec(whole)
  if (!match) {
    const problem = { message: 'the head is not closed by a line ---', position: START }
    return { fields: new Map(), body: '', bodyLine: 1, problem }
  }
  const linesBefore = match[0].split('\n').length - 1
  return { ...headOf(match[1] ?? ''), ...bodyOf(whole.slice(match[0].length), linesBefore + 1) }
}

function bodyOf(text: string, line: number): Pick<SidecarDocument, 'body' | 'bodyLine'> {
  const blank = /^\s*/.exec(text)?.[0] ?? ''
  return { body: text.trim(), bodyLine: line + blank.split('\n').length - 1 }
}

function headOf(head: string): Pick<SidecarDocument, 'fields' | 'problem'> {
  const counter = new LineCounter()
  // The head begins in the second line of the file.
  const at = (offset: number): Position => {
    const { line, col } = counter.linePos(offset)
    return { line: line + 1, column: col }
  }
  const failed = (message: string, offset: number) => ({
    fields: new Map(),
    problem: { message: message.split('\n', 1)[0] ?? message, position: at(offset) },
  })
  try {
    const document = parseDocument(head, {
      lineCounter: counter,
      prettyErrors: false,
      uniqueKeys: true,
      version: '1.2',
    })
    const [error] = document.errors
    if (error) return failed(`not valid YAML: ${error.message}`, error.pos[0])
    if (document.contents === null) return { fields: new Map() }
    if (!isMap(document.contents)) return failed('the head is no mapping of names to values', 0)
    // Without a bound, aliases of aliases grow without one.
    const plain = document.toJS({ maxAliasCount: 100 }) as Record<string, unknown>
    const fields = new Map<string, Field>()
    for (const pair of document.contents.items as Pair[]) {
      const name = isScalar(pair.key) ? String(pair.key.value) : ''
      const offset = isScalar(pair.key) ? (pair.key.range?.[0] ?? 0) : 0
      const positionOf = (path: readonly (string | number)[]): Position => {
        const node = document.getIn([name, ...path], true) as { range?: readonly number[] } | undefined
        return node?.range ? at(node.range[0] ?? offset) : at(offset)
      }
      fields.set(name, { value: plain[name], position: at(offset), positionOf })
    }
    return { fields }
  } catch (error) {
    return failed(messageOf(error), 0)
  }
}

/** A heading or a `name:` line of a text that stands for a field. */
export interface BodyField {
  readonly name: string
  /** The heading, where it is one. */
  readonly section?: string
  readonly line: number
}

/** Headings and `name:` lines outside of code blocks, their names in the form of fields: `Task runs` is `task_runs`. */
export function* bodyFields({ body, bodyLine }: Pick<SidecarDocument, 'body' | 'bodyLine'>): Iterable<BodyField> {
  let fence = ''
  for (const [index, text] of body.split('\n').entries()) {
    const [, mark = ''] = /^ {0,3}(`{3,}|~{3,})/.exec(text) ?? []
    if (mark !== '') {
      if (fence === '') fence = mark
      else if (mark.startsWith(fence)) fence = ''
      continue
    }
    if (fence !== '') continue
    const line = bodyLine + index
    const [, heading] = /^ {0,3}#{1,6}[ \t]+(.+?)[ \t#:]*$/.exec(text) ?? []
    if (heading !== undefined) yield { name: fieldName(heading), section: heading, line }
    const [, name] = /^([A-Za-z][A-Za-z0-9_-]{0,63}):(?:\s|$)/.exec(text) ?? []
    if (name !== undefined) yield { name: fieldName(name), line }
  }
}

const fieldName = (text: string) =>
  text
    .trim()
    .toLowerCase()
    .replace(/[\s-]+/g, '_')
