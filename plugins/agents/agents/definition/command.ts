import { parse } from 'shell-quote'

const MAX_WORDS = 256

/**
 * Splits a command line into words with shell quoting only: operators, globs, variables, substitutions and comments are
 * refused. Returns the words, or the problem.
 */
export function splitCommand(line: string): readonly string[] | { readonly wrong: string } {
  const wrong = (text: string) => ({ wrong: `command: ${text}; use plain words without shell syntax, or a script` })
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is refused
  if (/[\u0000-\u0008\u000a-\u001f\u007f]/.test(line)) return wrong('it has a control character or a line break')
  if (line.includes('`')) return wrong('substitutions are not run')
  if (!balanced(line)) return wrong('a quote is not closed, or it ends with a backslash')
  const words: string[] = []
  for (const entry of parse(line, name => ({ variable: name }))) {
    if (typeof entry === 'string') words.push(entry)
    else if ('variable' in entry) return wrong(`the variable $${entry.variable} is not expanded`)
    else if ('comment' in entry) return wrong('# starts a comment; quote it')
    else if (entry.op === 'glob') return wrong(`${entry.pattern} is not expanded; quote it to use it literally`)
    else return wrong(`${entry.op} needs a shell, but the command runs without one`)
  }
  const [first] = words
  if (first === undefined || first === '') return wrong('it is empty')
  if (/^[A-Za-z_][A-Za-z0-9_]*=/.test(first)) return wrong('it begins with an assignment instead of a program')
  if (words.length > MAX_WORDS) return wrong(`it has ${words.length} words, at most ${MAX_WORDS} are allowed`)
  return words
}

/** The parser silently closes open quotes, which would hide a mistake. */
function balanced(line: string): boolean {
  let quote = ''
  for (let at = 0; at < line.length; at++) {
    const char = line[at] as string
    if (char === '\\' && quote !== "'") {
      at++
      if (at === line.length) return false
    } else if (quote === '') {
      if (char === '"' || char === "'") quote = char
    } else if (char === quote) quote = ''
  }
  return quote === ''
}
