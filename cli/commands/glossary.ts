import { join } from 'node:path'
import { readRegularFileSync } from '../../kernel/kit/read-file.js'
import { wrapText } from '../show/text.js'

const MAX_BYTES = 1024 * 1024

/** The glossary entry of a word or its plural, in lines. Empty without an entry or a glossary. */
export function glossaryEntry(root: string, word: string, width: number): string[] {
  const text = readRegularFileSync(join(root, 'glossary.md'), { maxBytes: MAX_BYTES })?.toString() ?? ''
  const entries = new Map(
    text
      .split(/^## /m)
      .slice(1)
      .map(entry => {
        const [term = '', ...lines] = entry.split('\n')
        return [term.trim().toLowerCase(), lines.join(' ').replaceAll('`', '').trim()]
      }),
  )
  const wanted = word.toLowerCase()
  const meaning = entries.get(wanted) ?? entries.get(wanted.replace(/s$/, ''))
  return meaning === undefined ? [] : wrapText(meaning, width)
}
