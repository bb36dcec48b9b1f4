/** The first `max` characters, with a mark where something was cut. */
export function shortened(text: string, max: number): string {
  return text.length <= max ? text : `${whole(text.slice(0, max))}…`
}

/** Head and tail of a text of more than `max` characters, with words for what is left out between. */
export function headAndTail(text: string, max: number): string {
  if (text.length <= max) return text
  const head = Math.floor(max / 4)
  const left = text.length - max
  return `${whole(text.slice(0, head))}\n[… ${left} characters left out …]\n${text.slice(text.length - (max - head))}`
}

/** Without half of a surrogate pair at the end. */
const whole = (text: string) => text.replace(/[\uD800-\uDBFF]$/, '')

/** What an error says, on one line, without its last full stop. */
export function reasonOf(error: unknown): string {
  const { message } = (error ?? {}) as { message?: unknown }
  const text = typeof message === 'string' ? message : String(error)
  return shortened(text.replace(/\s+/g, ' ').trim(), 500).replace(/[\s.]+$/, '')
}
