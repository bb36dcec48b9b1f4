import { createScanner, type ParseError, printParseErrorCode } from 'jsonc-parser'

/** A syntax error in words, with its offset. */
export interface SyntaxProblem {
  readonly offset: number
  readonly text: string
}

/** Texts for the codes of the parser. */
const WORDS: Readonly<Record<string, string>> = {
  InvalidSymbol: 'a word without quotes is neither true, false nor null',
  InvalidNumberFormat: 'this number cannot be read',
  PropertyNameExpected: 'a name in double quotes is missing',
  ValueExpected: 'a value is missing',
  ColonExpected: 'a colon is missing after the name',
  CommaExpected: 'a comma is missing after this',
  CloseBraceExpected: 'a closing } is missing',
  CloseBracketExpected: 'a closing ] is missing',
  EndOfFileExpected: 'there is data after the end of the object',
  InvalidCommentToken: 'this comment cannot be read',
  UnexpectedEndOfComment: 'a comment is not closed',
  UnexpectedEndOfString: 'a string is not closed by a double quote',
  UnexpectedEndOfNumber: 'this number is not complete',
  InvalidUnicode: 'this \\u escape cannot be read',
  InvalidEscapeCharacter: 'this escape sequence is not valid in a string',
  InvalidCharacter: 'this character must be escaped in a string',
}
/** For a missing token the parser reports the token that follows, which may be lines later. */
const MISSING = ['ValueExpected', 'ColonExpected', 'CommaExpected']
const UNCLOSED = ['CloseBraceExpected', 'CloseBracketExpected']
/** The scanner's code for the end of the text. */
const END = 17

interface Token {
  /** Its first character. */
  readonly mark: string
  readonly offset: number
  readonly end: number
  readonly line: number
  /** Indentation of its line. */
  readonly indent: number
  /** Whether it is the first of its line. */
  readonly leads: boolean
}

/** The first error of a parse: later ones are mostly its consequences. */
export function syntaxProblem(text: string, errors: readonly ParseError[]): SyntaxProblem | undefined {
  const [first] = errors
  if (first === undefined) return undefined
  const tokens = tokensOf(text)
  const code = printParseErrorCode(first.error)
  const words = WORDS[code] ?? 'it is nested too deeply to be read'
  // A missing brace shows only at the end of the text, or as misplaced tokens.
  const open = errors.some(({ error }) => UNCLOSED.includes(printParseErrorCode(error))) ? unclosed(tokens) : undefined
  if (open) {
    const pair = open.mark === '{' ? '{ is not closed by a }' : '[ is not closed by a ]'
    return { offset: open.offset, text: `this ${pair}` }
  }
  if (!MISSING.includes(code)) return { offset: first.offset, text: words }
  const before = tokens.findLast(({ end }) => end <= first.offset)
  return { offset: before?.offset ?? first.offset, text: words }
}

/** The unclosed bracket, guessed by the indentation of the lines after it; else the last that stays open. */
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
