import { visible } from '../../../kernel/kit/text.js'

/**
 * A value of an agent in one line: after a line break it could be mistaken for output of the CLI. Invisible characters are marked.
 */
export function oneLine(value: unknown): string {
  return visible(String(value).replace(/\s*[\n\u2028\u2029]\s*/g, ' ⏎ '))
}
