import {
  FrontmatterError,
  type HeadField,
  type Position,
  parseHead,
  splitFrontmatter,
} from '../../../kernel/kit/frontmatter.js'
import type { PolicyDiagnostic } from '../../../schemas/sessions.js'

/** A file with an optional frontmatter between two lines `---`, as far as it could be parsed. */
export interface SidecarDocument {
  readonly fields: ReadonlyMap<string, HeadField>
  /** Trimmed, line feeds only. */
  readonly body: string
  /** The line of the file in which {@link body} begins. */
  readonly bodyLine: number
  readonly problem?: { readonly message: string; readonly position: Position }
}

/** Collects the problems of one file. */
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

/** Parses a file. Never throws: a syntax error is its `problem`. */
export function parseSidecar(text: string): SidecarDocument {
  const whole = text.replace(/^\uFEFF/, '').replaceAll('\r\n', '\n')
  const parts = splitFrontmatter(whole)
  if (parts === 'none') return { fields: new Map(), ...bodyOf(whole, 1) }
  if (parts === 'open') {
    const problem = { message: 'the head is not closed by a line ---', position: { line: 1, column: 1 } }
    return { fields: new Map(), body: '', bodyLine: 1, problem }
  }
  return { ...headOf(parts.head), ...bodyOf(parts.body, parts.bodyLine) }
}

function bodyOf(text: string, line: number): Pick<SidecarDocument, 'body' | 'bodyLine'> {
  const blank = /^\s*/.exec(text)?.[0] ?? ''
  return { body: text.trim(), bodyLine: line + blank.split('\n').length - 1 }
}

function headOf(head: string): Pick<SidecarDocument, 'fields' | 'problem'> {
  try {
    return { fields: parseHead(head) }
  } catch (error) {
    if (!(error instanceof FrontmatterError)) throw error
    return { fields: new Map(), problem: { message: error.message, position: error.position } }
  }
}

/** A heading or `name:` line in a body that looks like a field. */
export interface BodyField {
  readonly name: string
  /** Text of the heading, if it is one. */
  readonly section?: string
  readonly line: number
}

/** Headings and `name:` lines outside code blocks, with their names in the form of fields: `Task runs` is `task_runs`. */
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
