import type { CommandContext } from '../../../../kernel/plugin.js'

/** Columns of printed texts. */
const WIDTH = 78

/** A command with an interactive terminal. */
export type Terminal = CommandContext & { readonly terminal: NonNullable<CommandContext['terminal']> }

export const hasTerminal = (context: CommandContext): context is Terminal => context.terminal !== undefined

/** Remainder of an interview that ends early, with the command to continue. */
interface Left {
  readonly text: string
  readonly next: string
}

/** Asks a person questions at a terminal. */
export class Interview {
  /** Message for an interview that ends early. */
  left: Left = { text: 'nothing was created', next: '' }
  #isOver = false
  /** Stops listening for the awaited line. */
  #quiet = () => {}

  constructor(readonly context: Terminal) {}

  /** Runs a conversation; Ctrl-C ends it with the message about the remainder. */
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

  /** Prints a text wrapped to the width. @param indent columns before each continuation line */
  say(text: string, indent = 0): void {
    for (const line of wrapped(text, indent)) this.line(line)
  }

  /** Reads one line. @param needed whether an empty answer without a default repeats the question */
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

  /** Asks for yes or no; other answers repeat the question. */
  async confirm(question: string, usual: boolean): Promise<boolean> {
    for (;;) {
      const answer = (await this.ask(`${question} (y/n)`, usual ? 'y' : 'n')).toLowerCase()
      if (['y', 'yes'].includes(answer)) return true
      if (['n', 'no'].includes(answer)) return false
    }
  }

  /** Returns the index of the chosen answer; Enter chooses the first. */
  async choose(question: string, answers: readonly string[]): Promise<number> {
    this.line()
    this.say(question)
    for (const [at, text] of answers.entries()) this.say(`  ${at + 1}  ${text}`, 5)
    for (;;) {
      const at = Number(await this.ask(`1-${answers.length}`, '1')) - 1
      if (answers[at] !== undefined) return at
    }
  }

  /** Reads one hidden line; undefined if the person enters none. */
  async unseen(prompt: string): Promise<string | undefined> {
    const typed = await this.context.unseen?.(prompt)
    // Ctrl-C ends the prompt before the interview, so its handler gets a turn first.
    if (typed === undefined) await new Promise(resolve => setImmediate(resolve))
    return this.#isOver ? await new Promise(() => {}) : typed
  }

  #ended(why: string): never {
    const { text, next } = this.left
    return this.context.fault('interrupted', `${why}; ${text}`, next)
  }
}

/** Wraps a text into lines; leading white space is kept. */
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
