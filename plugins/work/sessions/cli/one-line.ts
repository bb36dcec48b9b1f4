import { visible } from '../../../../kernel/kit/text.js'

/**
 * A value of an agent in one line: with a line break it could pass for something that this command says. Characters that cannot be
 * seen are marked.
 */
export function oneLine(value: unknown): string {
  return visible(String(value).replace(/\s*[\n\u2028\u2029]\s*/g, ' ⏎ '))
}
