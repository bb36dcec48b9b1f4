import { createInterface, type Interface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'
import type { Sink } from '../io.js'
import { asciiText } from './ascii.js'
import { cleanLine, cutText, textWidth } from './text.js'

const frames = ['⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏', '|/-\\'] as const
const redrawMs = 120
/** Nothing is said of a silence that is shorter. */
const silentMs = 1000
/** Of a terminal that does not say how wide it is. */
const usualWidth = 80
const mostHistory = 200

/** How a line is taken in. */
export interface EditOptions {
  /** Shown before what is typed. */
  readonly prompt: string
  /** Earlier lines, the newest first: the arrow keys bring them back. */
  readonly history?: readonly string[]
  /** A line that was typed; undefined: the end of the input (Ctrl-D). */
  readonly take: (line: string | undefined) => void
}

/** `readline` keeps the row of the cursor within what it drew, and begins there when it draws again. */
type Editor = Interface & { prevRows: number; line: string }

/**
 * A terminal on which a stream goes on above, and a line about the work and the line that is being typed stand below it.
 * All output goes through it, so that what stands below is taken away first and drawn again afterwards.
 */
export class Screen implements Sink {
  /** Column at which the unfinished line of the stream ends. */
  #column = 0
  #editor: Editor | undefined
  #working: (() => string) | undefined
  #workingSince = 0
  #writtenAt = 0
  #frame = 0
  #timer: NodeJS.Timeout | undefined
  /** What stands below the stream now. */
  #shown: { readonly status: boolean; readonly prompt: boolean } | undefined

  constructor(
    private readonly input: Readable,
    private readonly output: Writable & { readonly columns?: number },
    private readonly interrupt: () => void,
    /** The terminal knows ASCII alone. */
    private readonly isAscii = false,
  ) {}

  readonly isTTY = true

  get columns(): number {
    return this.output.columns || usualWidth
  }

  /** Part of the stream; it may end within a line. */
  write(text: string): void {
    if (text === '') return
    this.#hide()
    this.output.write(text)
    // biome-ignore lint/suspicious/noControlCharactersInRegex: colours take no columns
    const plain = text.replace(/\x1b\[[\d;]*m/g, '')
    const last = plain.slice(plain.lastIndexOf('\n') + 1)
    this.#column = (plain.includes('\n') ? 0 : this.#column) + textWidth(last.replaceAll('\t', '        '))
    this.#writtenAt = Date.now()
    this.#show()
  }

  /** Says that something goes on, once nothing was written for a second: elapsed time, and what `more` tells. */
  working(more: (() => string) | undefined): void {
    if (more && !this.#working) this.#workingSince = Date.now()
    this.#working = more
    this.#writtenAt = Date.now()
    if (more) {
      this.#timer ??= setInterval(() => this.#tick(), redrawMs)
      this.#timer.unref()
      return
    }
    clearInterval(this.#timer)
    this.#timer = undefined
    if (this.#shown?.status) this.#redraw()
  }

  /** Opens the line that is typed, below the stream; the returned function closes it. */
  edit({ prompt, history = [], take }: EditOptions): () => void {
    const editor = createInterface({
      input: this.input,
      output: this.output,
      terminal: true,
      historySize: mostHistory,
      history: history.slice(0, mostHistory),
      removeHistoryDuplicates: true,
    }) as Editor
    this.#editor = editor
    editor.setPrompt(prompt)
    editor.on('line', line => {
      this.#forget(line)
      take(line)
    })
    editor.on('close', () => {
      if (this.#editor !== editor) return
      this.#hide()
      this.#editor = undefined
      take(undefined)
    })
    // A terminal that is closed. Not at once: it may be the end of the line that failed.
    editor.on('error', () => setImmediate(() => editor.close()))
    // In raw mode the terminal makes no signal of it.
    editor.on('SIGINT', () => this.interrupt())
    this.#show()
    return () => {
      if (this.#editor !== editor) return
      this.#hide()
      this.#editor = undefined
      editor.close()
      this.#show()
    }
  }

  /** Another text before what is typed: a question and its answers. What was typed so far stays. */
  ask(prompt: string): void {
    if (!this.#editor) return
    this.#hide()
    this.#editor.setPrompt(prompt)
    this.#show()
  }

  #tick(): void {
    if (!this.#working || Date.now() - this.#writtenAt < silentMs) return
    this.#frame++
    this.#redraw()
  }

  #redraw(): void {
    this.#hide()
    this.#show()
  }

  /** `readline` has ended the line that it drew: what it left is taken away, for the stream shows what was typed. */
  #forget(line: string): void {
    if (!this.#shown) return
    const prompt = this.#editor?.getPrompt() ?? ''
    const rows = Math.floor(textWidth(prompt + line) / this.columns) + 1
    this.#erase(rows + (this.#shown.status ? 1 : 0))
    this.#show()
  }

  #hide(): void {
    if (!this.#shown) return
    const { status, prompt } = this.#shown
    this.#erase((prompt ? (this.#editor?.prevRows ?? 0) : 0) + (status && prompt ? 1 : 0))
  }

  /** From the row of the cursor so many up, all below is taken away; the cursor is back at the end of the stream. */
  #erase(rows: number): void {
    const back = this.#column > 0 ? `\x1b[A\x1b[${(this.#column % this.columns) + 1}G` : ''
    this.output.write(`${rows > 0 ? `\x1b[${rows}A` : ''}\r\x1b[J${back}`)
    this.#shown = undefined
  }

  #show(): void {
    const status = this.#working !== undefined && Date.now() - this.#writtenAt >= silentMs
    const prompt = this.#editor !== undefined
    if (!status && !prompt) return
    this.output.write(this.#column > 0 ? '\n' : '')
    if (status) this.output.write(`${this.#status()}${prompt ? '\n' : ''}`)
    this.#shown = { status, prompt }
    if (!this.#editor) return
    this.#editor.prevRows = 0
    this.#editor.prompt(true)
  }

  #status(): string {
    const seconds = Math.floor((Date.now() - this.#workingSince) / 1000)
    const elapsed = seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`
    const more = cleanLine(this.#working?.() ?? '')
    const turns = frames[this.isAscii ? 1 : 0]
    const text = `${turns[this.#frame % turns.length]} working ${elapsed}${more === '' ? '' : ` · ${more}`}`
    return cutText(this.isAscii ? asciiText(text) : text, this.columns - 1)
  }
}
