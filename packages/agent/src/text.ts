/** At most `max` UTF-16 code units of a text; a character of two units is never split. */
export function clip(text: string, max: number): string {
  return text.length <= max ? text : text.slice(0, max).replace(/[\uD800-\uDBFF]$/, '')
}

/** A clipped text, with an ellipsis if anything was cut. */
export const shortened = (text: string, max: number): string => (text.length > max ? `${clip(text, max)}…` : text)

/** The head and tail of a text of more than `max` characters, with a note in place of the middle. */
export function headAndTail(text: string, max: number): string {
  if (text.length <= max) return text
  const head = Math.floor(max / 4)
  const left = text.length - max
  return `${clip(text, head)}\n[… ${left} characters left out …]\n${text.slice(text.length - (max - head))}`
}

/** The message of an error on one line, without its final full stop. */
export function reasonOf(error: unknown): string {
  const { message } = (error ?? {}) as { message?: unknown }
  const text = typeof message === 'string' ? message : String(error)
  return shortened(text.replace(/\s+/g, ' ').trim(), 500).replace(/[\s.]+$/, '')
}
