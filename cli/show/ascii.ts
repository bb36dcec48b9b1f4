import type { Env } from '../address.js'
import type { Sink } from '../io.js'

/** Signs that the output is made of, and what stands for them where a terminal knows ASCII alone. */
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

/** Does the locale name a character set other than UTF-8; one that is not set names none. */
export function isAsciiLocale({ LC_ALL, LC_CTYPE, LANG }: Env): boolean {
  const locale = LC_ALL || LC_CTYPE || LANG
  return locale !== undefined && locale !== '' && !/utf-?8/i.test(locale)
}

/** The text in ASCII: signs of ours by what is like them, everything else that is no ASCII as `?`. */
export function asciiText(text: string): string {
  return text.replace(/[^\p{ASCII}]/gu, sign => signs[sign] ?? '?')
}

/** What is written to the sink is ASCII. */
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
