import type { TaskContext } from './task-context.js'

/** Maximum bytes of a prompt as JSON: the daemon accepts bodies of 1 MiB, which contain little else. */
const PROMPT_BYTES = 1024 * 1024 - 16 * 1024

/** A question whose default answer is yes. */
export async function confirm(
  { terminal, out }: Pick<TaskContext, 'terminal' | 'out'>,
  question: string,
  usual = true,
): Promise<boolean> {
  if (!terminal) return false
  const line = await typedLine({ terminal, out }, `${question} ${usual ? '[Y/n]' : '[y/N]'} `)
  const answer = line?.trim().toLowerCase()
  if (answer === undefined) return false
  return answer === '' ? usual : answer === 'y' || answer === 'yes'
}

/** The prompt from the argument, from standard input, or typed at the terminal. */
export async function promptText(context: TaskContext): Promise<string> {
  const { args, terminal, stdin, fault } = context
  const argument = args.text ?? args.prompt
  let text = argument ?? ''
  if (argument === '-' || (argument === undefined && !terminal)) text = await stdin()
  else if (argument === undefined) text = (await typedLine(context, '> ')) ?? ''
  if (text.trim() === '')
    fault('usage', 'the text of the prompt is missing', 'svc run "Summarise the TODOs in this folder"')
  // Checked before a session is made, which would stay behind without a prompt.
  const bytes = Buffer.byteLength(JSON.stringify(text))
  if (bytes > PROMPT_BYTES)
    fault(
      'prompt_too_large',
      `the prompt has ${bytes} bytes as JSON, and a prompt has at most ${PROMPT_BYTES}. Send a long text as a file: --attach <file>`,
      'svc run --attach <file> "Read the attached file"',
    )
  return text
}

/** Reads one line after a label; undefined at the end of the input, and without a terminal. */
export async function typedLine(
  { terminal, out }: Pick<TaskContext, 'terminal' | 'out'>,
  prompt: string,
): Promise<string | undefined> {
  if (!terminal) return undefined
  out.text(prompt)
  return new Promise(resolve => {
    const quiet = terminal.onLine(line => {
      quiet()
      resolve(line)
    })
  })
}
