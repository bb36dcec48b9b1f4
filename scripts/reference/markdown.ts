/** A page with its title, origin and sections. */
export function page(title: string, ...sections: readonly string[]): string {
  const origin = '<!-- Generated from the code by `npm run docs:reference`; edit the code instead. -->'
  return `${[`# ${title}`, origin, ...sections].join('\n\n')}\n`
}

/** A table; empty without rows. */
export function table(headers: readonly string[], rows: readonly (readonly string[])[]): string {
  if (rows.length === 0) return ''
  const line = (cells: readonly string[]) => `| ${cells.map(cell).join(' | ')} |`
  return [line(headers), `|${' --- |'.repeat(headers.length)}`, ...rows.map(line)].join('\n')
}

export const code = (text: string) => `\`${text}\``

/** The text of a cell: on one line, with bars escaped. */
const cell = (text: string) => text.replace(/\s*\n\s*/g, ' ').replaceAll('|', '\\|')

export const byName = <T>(nameOf: (item: T) => string) => {
  return (a: T, b: T) => (nameOf(a) < nameOf(b) ? -1 : 1)
}
