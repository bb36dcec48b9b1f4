/** A page: its title, where it comes from, and its sections. */
export function page(title: string, ...sections: readonly string[]): string {
  const origin = '<!-- Generated from the code by `npm run docs:reference`; edit the code instead. -->'
  return `${[`# ${title}`, origin, ...sections].join('\n\n')}\n`
}

/** A table; empty when there is no row. */
export function table(headers: readonly string[], rows: readonly (readonly string[])[]): string {
  if (rows.length === 0) return ''
  const line = (cells: readonly string[]) => `| ${cells.map(cell).join(' | ')} |`
  return [line(headers), `|${' --- |'.repeat(headers.length)}`, ...rows.map(line)].join('\n')
}

export const code = (text: string) => `\`${text}\``

/** A text on one line, whose bars do not end the cell. */
const cell = (text: string) => text.replace(/\s*\n\s*/g, ' ').replaceAll('|', '\\|')

export const byName = <T>(nameOf: (item: T) => string) => {
  return (a: T, b: T) => (nameOf(a) < nameOf(b) ? -1 : 1)
}
