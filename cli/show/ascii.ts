import type { Env } from '../address.js'
import type { Sink } from '../io.js'

/** Symbols in the output, with their replacements on an ASCII-only terminal. */
const signs: Readonly<Record<string, string>> = {
  '…': '...',
  '•': '*',
  '✓': '+',
  '✗': 'x',
  '·': '-',
  '–': '-',
  '—': '-',
  '’': "'",
  '→': '->',
  '▸': '>',
  '⏎': '\\n',
  '─': '-',
  '☑': '[x]',
  '☐': '[ ]',
  // Bars, by their height.
  ...{ '▁': '_', '▂': '.', '▃': ':', '▄': '-', '▅': '=', '▆': '+', '▇': '*', '█': '#' },
}

/** Whether the locale names a character set other than UTF-8; an unset locale does not. */
export function isAsciiLocale({ LC_ALL, LC_CTYPE, LANG }: Env): boolean {
  const locale = LC_ALL || LC_CTYPE || LANG
  return locale !== undefined && locale !== '' && !/utf-?8/i.test(locale)
}

/** The text in ASCII: known symbols are replaced by similar ones, all other characters by `?`. */
export function asciiText(text: string): string {
  return text.replace(/[^\p{ASCII}]/gu, sign => signs[sign] ?? '?')
}

/** A sink that converts its output to ASCII. */
export function asciiSink(sink: Sink): Sink {
  return {
    write: text => sink.write(asciiText(text)),
    get isTTY() {
      return sink.isTTY
    },
    get columns() {
      return sink.columns
    },
    get rows() {
      return sink.rows
    },
  }
}
