import { typedLine } from '../../plugins/work/session-commands/typed.js'
import type { LocalContext } from '../local.js'

/** Index of the chosen answer; the first one on Enter, or at the end of the input. */
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
