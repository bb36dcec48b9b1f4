import { type ParseError, parse } from 'jsonc-parser'
import { parse as parseToml } from 'smol-toml'
import { headValues, parseHead, splitFrontmatter } from '../../../kernel/kit/frontmatter.js'

/** Largest size in bytes of a declaration. */
const MOST_BYTES = 1024 * 1024
/** Largest size in bytes of other files, such as scripts. These are only searched for texts in the form of a path. */
const SCRIPT_BYTES = 64 * 1024
const LONGEST = 1024
/** The name of a variable is not a file name, but its default value may be. */
const VARIABLE = /\$\{?\w+(?::?-)?/g
const SEPARATORS = /[\s'"`;|&()<>=,:${}[\]]+/

/** All texts in a file that may name another file: parsed values, and the words in them. */
export function stringsIn(name: string, bytes: Buffer): readonly string[] {
  if (bytes.length > MOST_BYTES || bytes.includes(0)) return []
  const text = bytes.toString().replace(/^\uFEFF/, '')
  const found = new Set<string>()
  const add = (one: string) => {
    if (one !== '' && one.length <= LONGEST) found.add(one)
  }
  const values = valuesIn(name, text)
  if (values) {
    for (const value of values) for (const one of [value, ...value.replace(VARIABLE, ' ').split(SEPARATORS)]) add(one)
  } else if (bytes.length <= SCRIPT_BYTES) {
    for (const one of text.split(SEPARATORS)) if (one.includes('/')) add(one)
  }
  return [...found]
}

/**
 * The texts that a file declares; undefined for other kinds of files. A malformed declaration counts with its whole text: this
 * program does not use it, but more lenient parsers may.
 */
function valuesIn(name: string, text: string): readonly string[] | undefined {
  if (/\.jsonc?$/i.test(name)) {
    // The recursive parser fails on deeply nested texts.
    return orElse(() => jsonValues(text), [text])
  }
  if (/\.ya?ml$/i.test(name)) return yamlValues(text) ?? [text]
  if (/\.toml$/i.test(name)) return orElse(() => textsOf(parseToml(text)), [text])
  if (!/\.md$/i.test(name)) return undefined
  // The programs that read these files accept leading blank lines and any line endings.
  const split = splitFrontmatter(text.replace(/\r\n?/g, '\n').trimStart())
  if (split === 'none') return []
  // The body and the description are shown to an agent; files that they mention are not run.
  return split === 'open' ? [text] : (yamlValues(split.head, 'description') ?? [split.head])
}

function jsonValues(text: string): readonly string[] {
  const errors: ParseError[] = []
  const value = parse(text, errors, { allowTrailingComma: true })
  return [...textsOf(value), ...(errors.length > 0 ? [text] : [])]
}

function yamlValues(head: string, prose?: string): readonly string[] | undefined {
  return orElse(() => {
    const { [prose ?? '']: _, ...values } = headValues(parseHead(head))
    return textsOf(values)
  }, undefined)
}

function orElse<T>(read: () => T, otherwise: T): T {
  try {
    return read()
  } catch {
    return otherwise
  }
}

function textsOf(value: unknown, depth = 0): string[] {
  if (typeof value === 'string') return [value]
  if (typeof value !== 'object' || value === null || depth > 32) return []
  return Object.entries(value).flatMap(([key, one]) => [key, ...textsOf(one, depth + 1)])
}
