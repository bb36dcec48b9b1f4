import * as v from 'valibot'

/**
 * The schema of a text that somebody wrote: trimmed, then `min` to `max` UTF-16 code units long.
 * @param min 0 admits the empty text
 */
export const text = (max: number, min = 1) => v.pipe(v.string(), v.trim(), v.minLength(min), v.maxLength(max))

/** At most `max` UTF-16 code units of a text, then `…` if it was longer; a character of two units is never split. */
export function cut(value: string, max: number): string {
  if (value.length <= max) return value
  const last = value.charCodeAt(max - 1)
  return `${value.slice(0, last >= 0xd800 && last <= 0xdbff ? max - 1 : max)}…`
}

/**
 * A foreign text as an error quotes it: in quotation marks, control characters escaped, at most `max` code units and then `…`.
 */
export function shown(value: string, max = 200): string {
  return JSON.stringify(cut(value, max))
}

/** A name that goes into SQL as it is. Throws TypeError for anything but lower-case words. */
export function sqlName(name: string): string {
  if (!/^[a-z][a-z0-9_]{0,127}$/.test(name))
    throw new TypeError(`${JSON.stringify(name)} is no name of a table or column`)
  return name
}

/** Whether a name, or a pattern that ends with `*`, stands for everything that another one stands for. */
export const covers = (pattern: string, atom: string): boolean =>
  pattern === atom || (pattern.endsWith('*') && atom.startsWith(pattern.slice(0, -1)))
