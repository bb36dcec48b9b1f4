import { createScanner, type ParseError, printParseErrorCode } from 'jsonc-parser'

/** What is wrong with a text, in words, and where. */
export interface SyntaxProblem {
  readonly offset: number
  readonly text: string
}

/** Of what the parser calls a code. */
const WORDS: Readonly<Record<string, string>> = {
  InvalidSymbol: 'a word without quotes is neither true, false nor null',
  InvalidNumberFormat: 'this number cannot be read',
  PropertyNameExpected: 'a name in double quotes is missing',
  ValueExpected: 'a value is missing',
  ColonExpected: 'a colon is missing after the name',
  CommaExpected: 'a comma is missing after this',
  CloseBraceExpected: 'a closing } is missing',
  CloseBracketExpected: 'a closing ] is missing',
  EndOfFileExpected: 'something follows the end of the object',
  InvalidCommentToken: 'this comment cannot be read',
  UnexpectedEndOfComment: 'a comment is not closed',
  UnexpectedEndOfString: 'a text is not closed by a double quote',
  UnexpectedEndOfNumber: 'this number is not complete',
  InvalidUnicode: 'this \\u escape cannot be read',
  InvalidEscapeCharacter: 'there is no such escape in a text',
  InvalidCharacter: 'this character has to be escaped in a text',
}
/** Of something that is missing the parser names what follows it, which may be lines later. */
const MISSING = ['ValueExpected', 'ColonExpected', 'CommaExpected']
const UNCLOSED = ['CloseBraceExpected', 'CloseBracketExpected']
/** The kind of the last token of a text. */
const END = 17

interface Token {
  /** Its first character. */
  readonly mark: string
  readonly offset: number
  readonly end: number
  readonly line: number
  /** Of its line. */
  readonly indent: number
  /** It is the first of its line. */
  readonly leads: boolean
}

/** The first of the errors that a parser found: what follows it are mostly its consequences. */
export function syntaxProblem(text: string, errors: readonly ParseError[]): SyntaxProblem | undefined {
  const [first] = errors
  if (first === undefined) return undefined
  const tokens = tokensOf(text)
  const code = printParseErrorCode(first.error)
  const words = WORDS[code] ?? 'it is nested too deeply to be read'
  // A brace that is missing early shows at the end of the text, or as what then looks misplaced.
  const open = errors.some(({ error }) => UNCLOSED.includes(printParseErrorCode(error))) ? unclosed(tokens) : undefined
  if (open) {
    const pair = open.mark === '{' ? '{ is not closed by a }' : '[ is not closed by a ]'
    return { offset: open.offset, text: `this ${pair}` }
  }
  if (!MISSING.includes(code)) return { offset: first.offset, text: words }
  const before = tokens.findLast(({ end }) => end <= first.offset)
  return { offset: before?.offset ?? first.offset, text: words }
}

/** What is opened and not closed, by the indentation of what follows; else the last that stays open. */
function unclosed(tokens: readonly Token[]): Token | undefined {
  const stack: Token[] = []
  for (const token of tokens) {
    const top = stack.at(-1)
    if ('{['.includes(token.mark)) {
      stack.push(token)
      continue
    }
    const closes = '}]'.includes(token.mark)
    const outside = closes ? token.indent < (top?.indent ?? 0) : token.indent <= (top?.indent ?? -1)
    if (top && token.leads && token.line > top.line && outside) return top
    if (closes) stack.pop()
  }
  return stack.at(-1)
}

function tokensOf(text: string): Token[] {
  const scanner = createScanner(text, true)
  const tokens: Token[] = []
  const lines = text.split('\n')
  for (let kind = scanner.scan(); (kind as number) !== END; kind = scanner.scan()) {
    const line = scanner.getTokenStartLine()
    const offset = scanner.getTokenOffset()
    const indent = /^\s*/.exec(lines[line] ?? '')?.[0].length ?? 0
    const leads = tokens.at(-1)?.line !== line
    tokens.push({ mark: text[offset] ?? ' ', offset, end: offset + scanner.getTokenLength(), line, indent, leads })
  }
  return tokens
}
