import { text } from '../../text.js'

/** Parses the JSON text of a form field. @throws Error with a message for the form */
export function parsedJson(source: string): unknown {
  try {
    return JSON.parse(source) as unknown
  } catch {
    throw new Error(text.manage.badJson)
  }
}

/** The items of a text, separated by lines or commas. */
export const listed = (source: string): string[] =>
  source
    .split(/[\n,]/)
    .map(item => item.trim())
    .filter(Boolean)

/** `KEY=value` lines as an object. */
export const pairs = (source: string): Record<string, string> =>
  Object.fromEntries(
    source
      .split('\n')
      .filter(line => line.includes('='))
      .map(line => [line.slice(0, line.indexOf('=')).trim(), line.slice(line.indexOf('=') + 1).trim()]),
  )

/** Members with a value; a request omits empty fields. */
export const filled = <T extends Readonly<Record<string, string | undefined>>>(values: T): Partial<T> =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined && value !== '')) as Partial<T>
