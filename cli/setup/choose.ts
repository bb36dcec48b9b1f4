import { typedLine } from '../../plugins/work/sessions/cli/typed.js'
import type { LocalContext } from '../local.js'

/** Index of the answer; the first one when only Enter is pressed, or when the input ends. */
export async function choose(context: LocalContext, question: string, answers: readonly string[]): Promise<number> {
  const { out } = context
  out.line('')
  out.line(question)
  for (const [at, text] of answers.entries()) out.line(`  ${at + 1}  ${text}`)
  for (;;) {
    const line = await typedLine(context, `1-${answers.length} [1] `)
    if (line === undefined || line.trim() === '') return 0
    const at = Number(line.trim()) - 1
    if (Number.isInteger(at) && answers[at] !== undefined) return at
  }
}
