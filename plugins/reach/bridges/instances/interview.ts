import type { CommandContext } from '../../../../kernel/plugin.js'

/** Columns of the texts that are shown. */
const WIDTH = 78

/** A command whose caller can be asked. */
export type Terminal = CommandContext & { readonly terminal: NonNullable<CommandContext['terminal']> }

export const hasTerminal = (context: CommandContext): context is Terminal => context.terminal !== undefined

/** What an interview leaves when it ends early, and the command that goes on with it. */
interface Left {
  readonly text: string
  readonly next: string
}

/** Questions to a person at a terminal. */
export class Interview {
  /** What the person is told when the interview ends early. */
  left: Left = { text: 'nothing was created', next: '' }
  #isOver = false
  /** Stops listening for the line that is awaited. */
  #quiet = () => {}

  constructor(readonly context: Terminal) {}

  /** Runs a conversation; Ctrl-C ends it with what it leaves. */
  async run<T>(work: () => Promise<T>): Promise<T> {
    let interrupt = () => {}
    const over = new Promise<never>((_, reject) => {
      interrupt = () => reject(new Error('interrupted'))
    })
    const giveBack = this.context.onInterrupt(() => {
      this.#isOver = true
      this.#quiet()
      interrupt()
    })
    try {
      return await Promise.race([work(), over])
    } catch (error) {
      if (!this.#isOver) throw error
      this.context.out.line('')
      return this.#ended('the setup was interrupted')
    } finally {
      giveBack()
    }
  }

  line(text = ''): void {
    this.context.out.line(text)
  }

  /** A text in lines of a small terminal. @param indent columns before each line behind the first one */
  say(text: string, indent = 0): void {
    for (const line of wrapped(text, indent)) this.line(line)
  }

  /** One typed line. @param needed an empty answer without a default is asked for again */
  async ask(question: string, usual = '', needed = true): Promise<string> {
    const { out, terminal } = this.context
    const lines = wrapped(`${question}${usual === '' ? '' : ` [${usual}]`}:`)
    for (;;) {
      out.text(`${lines.join('\n')} `)
      const line = await new Promise<string | undefined>(resolve => {
        this.#quiet = terminal.onLine(typed => {
          this.#quiet()
          resolve(typed)
        })
      })
      if (this.#isOver) return await new Promise(() => {})
      if (line === undefined) {
        this.line()
        return this.#ended('the input ended before the setup did')
      }
      const answer = line.trim() || usual
      if (answer !== '' || !needed) return answer
    }
  }

  /** A yes or a no; the question is asked again for another answer. */
  async confirm(question: string, usual: boolean): Promise<boolean> {
    for (;;) {
      const answer = (await this.ask(`${question} (y/n)`, usual ? 'y' : 'n')).toLowerCase()
      if (['y', 'yes'].includes(answer)) return true
      if (['n', 'no'].includes(answer)) return false
    }
  }

  /** Index of the answer that is chosen; the first for Enter alone. */
  async choose(question: string, answers: readonly string[]): Promise<number> {
    this.line()
    this.say(question)
    for (const [at, text] of answers.entries()) this.say(`  ${at + 1}  ${text}`, 5)
    for (;;) {
      const at = Number(await this.ask(`1-${answers.length}`, '1')) - 1
      if (answers[at] !== undefined) return at
    }
  }

  /** One line that is not shown; undefined where the person gives none. */
  async unseen(prompt: string): Promise<string | undefined> {
    const typed = await this.context.unseen?.(prompt)
    // Ctrl-C ends the prompt before it ends the interview.
    if (typed === undefined) await new Promise(resolve => setImmediate(resolve))
    return this.#isOver ? await new Promise(() => {}) : typed
  }

  #ended(why: string): never {
    const { text, next } = this.left
    return this.context.fault('interrupted', `${why}; ${text}`, next)
  }
}

/** Words of a text in lines; the white space before the first word stays. */
export function wrapped(text: string, indent = 0): string[] {
  const lines: string[] = []
  const [before = ''] = /^\s*/.exec(text) ?? []
  for (const word of text.split(/\s+/).filter(word => word !== '')) {
    const last = lines.at(-1)
    if (last === undefined) lines.push(`${before}${word}`)
    else if (last.length + word.length < WIDTH) lines[lines.length - 1] = `${last} ${word}`
    else lines.push(`${' '.repeat(indent)}${word}`)
  }
  return lines
}
