import { createInterface, type Interface, type Key } from 'node:readline'
import type { Readable, Writable } from 'node:stream'
import type { Sink } from '../io.js'
import { asciiText } from './ascii.js'
import { LineHistory } from './line-history.js'
import { Pastes } from './pastes.js'
import { cleanLine, cutText, textWidth } from './text.js'

const frames = ['⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏', '|/-\\'] as const
const redrawMs = 120
/** Shorter silences are not shown. */
const silentMs = 1000
/** Default width of a terminal. */
const usualWidth = 80
/** Milliseconds after which an escape character counts as the Escape key. */
const escapeMs = 50
/** Milliseconds for input typed before the line was opened, whose Enter the terminal sends as Ctrl-J. */
const typedAheadMs = 200
/** Makes the terminal mark pasted text, so that its line breaks do not submit. */
const pasteMarks = { on: '\x1b[?2004h', off: '\x1b[?2004l' }
/** Maximum characters of the stream kept while an editor has the terminal; earlier ones are dropped. */
const mostHeld = 4 * 1024 * 1024

/** The effect of a key before the line is edited: none (`edit`), complete (`taken`), or a character for the draft set aside. */
export type KeyUse = 'edit' | 'taken' | 'aside'

/** Options of the input line. */
export interface EditOptions {
  /** Text before the input. */
  readonly prompt: string
  /** Earlier lines for the arrow keys, newest first. */
  readonly history?: readonly string[]
  /** Receives an entered text, and its form in the line; undefined: the end of the input (Ctrl-D). */
  readonly take: (text: string | undefined, shown: string) => void
  /** Receives each key first: its name (`enter`, `escape`, `tab`, `ctrl-o`) or its text; `paste` is pasted text. */
  readonly key?: (key: string, typed: string) => KeyUse
  /** Resolves to the replacement of the text before the cursor on Tab, undefined for none. */
  readonly complete?: (before: string) => Promise<string | undefined>
  /** Edits a text in a program that takes over the terminal; undefined: the text stays unchanged. */
  readonly compose?: (text: string) => Promise<string | undefined>
}

/**
 * `readline` stores the cursor row within its drawing and redraws from there. Its key handler may be replaced, as the REPL of
 * Node.js does.
 */
type Editor = Interface & {
  prevRows: number
  line: string
  cursor: number
  _ttyWrite(text: string | undefined, key: Key): void
}

/**
 * A terminal with a stream, and below it status lines and the input line. All output goes through it, so that the lines below are
 * erased first and redrawn afterwards.
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
  /** State below the stream: rows above the input line, and whether that line is shown. */
  #shown: { readonly above: number; readonly prompt: boolean } | undefined
  /** Status lines. */
  #live: readonly string[] = []
  #options: EditOptions | undefined
  #history: LineHistory | undefined
  #openedAt = 0
  /** The draft set aside for a question. */
  #aside: string | undefined
  readonly #pastes = new Pastes()
  /** Output buffered while an editor has the terminal. */
  #held: string | undefined

  constructor(
    private readonly input: Readable & { setRawMode?(on: boolean): unknown },
    private readonly output: Writable & { readonly columns?: number },
    private readonly interrupt: () => void,
    /** Whether the terminal supports ASCII only. */
    private readonly isAscii = false,
  ) {}

  readonly isTTY = true

  get columns(): number {
    return this.output.columns || usualWidth
  }

  /** Writes a part of the stream, which may end within a line. */
  write(text: string): void {
    if (text === '') return
    if (this.#held !== undefined) {
      this.#held = (this.#held + text).slice(-mostHeld)
      return
    }
    this.#hide()
    this.output.write(text)
    // biome-ignore lint/suspicious/noControlCharactersInRegex: colours take no columns
    const plain = text.replace(/\x1b\[[\d;]*m/g, '')
    const last = plain.slice(plain.lastIndexOf('\n') + 1)
    this.#column = (plain.includes('\n') ? 0 : this.#column) + textWidth(last.replaceAll('\t', '        '))
    this.#writtenAt = Date.now()
    this.#show()
  }

  /** Writes a separate line, after ending an unfinished line of the stream. */
  say(line: string): void {
    this.write(`${this.#column > 0 ? '\n' : ''}${line}\n`)
  }

  /** Shows an activity line after a second without output: elapsed time, and the details of `more`. */
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
    if (this.#shown) this.#redraw()
  }

  /** Replaces the status lines. */
  live(lines: readonly string[]): void {
    if (lines.length === 0 && this.#live.length === 0) return
    this.#hide()
    this.#live = lines
    this.#show()
  }

  /** Opens the input line below the stream; the returned function closes it. */
  edit(options: EditOptions): () => void {
    const { prompt, take } = options
    const editor = createInterface({
      input: this.input,
      output: this.output,
      terminal: true,
      // Node.js 24 and later keep a text of several lines in reverse order, and return it so.
      historySize: 0,
      escapeCodeTimeout: escapeMs,
    }) as Editor
    const history = new LineHistory(options.history ?? [])
    this.#history = history
    keepPlain(editor)
    this.#editor = editor
    this.#options = options
    this.#openedAt = Date.now()
    const write = editor._ttyWrite.bind(editor)
    editor._ttyWrite = (text, key) => this.#press(text, key, write)
    editor.setPrompt(prompt)
    editor.on('line', line => {
      this.#forget(line)
      history.add(line)
      take(this.#pastes.whole(line), line)
    })
    editor.on('close', () => {
      if (this.#editor !== editor) return
      this.#closeEditor()
      take(undefined, '')
    })
    // An error of the input means that the terminal was closed. Deferred, because the error may come from the end of
    // the line itself.
    editor.on('error', () => setImmediate(() => editor.close()))
    // In raw mode the terminal sends no signal for Ctrl-C.
    editor.on('SIGINT', () => this.interrupt())
    this.output.write(pasteMarks.on)
    this.#show()
    return () => {
      if (this.#editor !== editor) return
      this.#closeEditor()
      editor.close()
      this.#show()
    }
  }

  /**
   * Changes the text before the input, for a question and its answers. The typed text stays; `aside` sets it aside until the next
   * call without it.
   */
  ask(prompt: string, { aside = false }: { readonly aside?: boolean } = {}): void {
    const editor = this.#editor
    if (!editor) return
    this.#hide()
    editor.setPrompt(prompt)
    if (aside) {
      this.#aside ??= editor.line
      this.#setLine('')
    } else if (this.#aside !== undefined) {
      this.#setLine(this.#aside + editor.line)
      this.#aside = undefined
    }
    this.#show()
  }

  /** Whether there is typed text that was not entered, including text set aside. */
  get isTyping(): boolean {
    return (this.#editor?.line ?? '') !== '' || (this.#aside ?? '') !== ''
  }

  /** Restores the terminal at the end of the process. */
  close(): void {
    if (this.#editor) this.output.write(pasteMarks.off)
  }

  #closeEditor(): void {
    this.#hide()
    this.output.write(pasteMarks.off)
    this.#editor = undefined
    this.#history = undefined
    this.#options = undefined
  }

  #press(text: string | undefined, key: Key, write: Editor['_ttyWrite']): void {
    const editor = this.#editor
    if (!editor || this.#held !== undefined) return
    const pasted = this.#pastes.take(key)
    if (pasted === 'more') return
    if (pasted !== undefined) {
      if (pasted === '') return
      this.#history?.stop()
      const use = this.#options?.key?.('paste', editor.line) ?? 'edit'
      if (use === 'aside') this.#aside = (this.#aside ?? '') + this.#pastes.shown(pasted)
      else if (use === 'edit') this.#insert(this.#pastes.shown(pasted))
      return
    }
    const isAhead = key.sequence === '\n' && Date.now() - this.#openedAt < typedAheadMs
    const name = isAhead ? 'enter' : nameOf(text, key)
    const use = this.#options?.key?.(name, editor.line) ?? 'edit'
    if (use === 'taken') return
    const way = use === 'edit' ? ways[name] : undefined
    if (way === undefined) this.#history?.stop()
    if (use === 'aside') this.#typeAside(name)
    else if (way !== undefined) this.#recall(way)
    else if (name === 'newline') this.#insert('\n')
    // A line with a backslash at its end continues.
    else if (name === 'enter' && editor.line.endsWith('\\') && editor.cursor === editor.line.length) {
      this.#setLine(editor.line.slice(0, -1))
      this.#insert('\n')
    } else if (name === 'tab') this.#complete()
    else if (name === 'ctrl-g') void this.#compose()
    else write(text, key)
  }

  #recall(way: 'older' | 'newer'): void {
    const editor = this.#editor
    const line = editor && this.#history?.next(way, editor.line, editor.cursor)
    if (line === undefined) return
    this.#hide()
    this.#setLine(line)
    this.#show()
  }

  #typeAside(name: string): void {
    const before = this.#aside ?? ''
    if (name === 'backspace') this.#aside = before.slice(0, -1)
    else if (name === 'space') this.#aside = `${before} `
    else if ([...name].length === 1) this.#aside = before + name
  }

  #insert(text: string): void {
    const editor = this.#editor
    if (!editor) return
    const { line, cursor } = editor
    this.#hide()
    this.#setLine(line.slice(0, cursor) + text + line.slice(cursor), cursor + text.length)
    this.#show()
  }

  #setLine(line: string, cursor = line.length): void {
    if (this.#editor) Object.assign(this.#editor, { line, cursor })
  }

  #complete(): void {
    const editor = this.#editor
    const complete = this.#options?.complete
    if (!editor || !complete) return
    const { line, cursor } = editor
    const put = (text: string | undefined) => {
      // The line was changed in the meantime.
      if (text === undefined || this.#editor?.line !== line || this.#editor.cursor !== cursor) return
      this.#hide()
      this.#setLine(text + line.slice(cursor), text.length)
      this.#show()
    }
    // Input works without a completion.
    complete(line.slice(0, cursor)).then(put, () => {})
  }

  /** Gives the terminal to an editor; later output is shown afterwards. */
  async #compose(): Promise<void> {
    const editor = this.#editor
    const compose = this.#options?.compose
    if (!editor || !compose) return
    this.#hide()
    this.output.write(`${pasteMarks.off}${this.#column > 0 ? '\n' : ''}`)
    this.#column = 0
    this.#held = ''
    editor.pause()
    this.input.setRawMode?.(false)
    const text = await compose(this.#pastes.whole(editor.line)).catch(() => undefined)
    const held = this.#held
    this.#held = undefined
    if (this.#editor !== editor) return
    this.input.setRawMode?.(true)
    editor.resume()
    this.output.write(pasteMarks.on)
    if (text !== undefined) this.#setLine(this.#pastes.shown(text))
    this.write(held)
    this.#redraw()
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

  /** Erases the line that `readline` has ended, because the stream shows the typed text. */
  #forget(line: string): void {
    if (!this.#shown) return
    const [last = '', ...rows] = `${this.#editor?.getPrompt() ?? ''}${line}`.split('\n').map(textWidth).reverse()
    const above = rows.reduce<number>((sum, width) => sum + Math.max(1, Math.ceil(width / this.columns)), 0)
    this.#erase(above + Math.floor(Number(last) / this.columns) + 1 + this.#shown.above)
    this.#show()
  }

  #hide(): void {
    if (!this.#shown) return
    const { above, prompt } = this.#shown
    this.#erase(prompt ? (this.#editor?.prevRows ?? 0) + above : above - 1)
  }

  /** Erases everything from this number of rows above the cursor; the cursor returns to the end of the stream. */
  #erase(rows: number): void {
    const back = this.#column > 0 ? `\x1b[A\x1b[${(this.#column % this.columns) + 1}G` : ''
    this.output.write(`${rows > 0 ? `\x1b[${rows}A` : ''}\r\x1b[J${back}`)
    this.#shown = undefined
  }

  #show(): void {
    if (this.#held !== undefined) return
    const status = this.#working !== undefined && Date.now() - this.#writtenAt >= silentMs
    const prompt = this.#editor !== undefined
    const lines = [...this.#live.map(line => this.#row(line)), ...(status ? [this.#status()] : [])]
    if (lines.length === 0 && !prompt) return
    this.output.write(this.#column > 0 ? '\n' : '')
    if (lines.length > 0) this.output.write(`${lines.join('\n')}${prompt ? '\n' : ''}`)
    this.#shown = { above: lines.length, prompt }
    if (!this.#editor) return
    this.#editor.prevRows = 0
    this.#editor.prompt(true)
  }

  /** A line cut to one row: a wrapped line could not be erased. */
  #row(line: string): string {
    const text = cleanLine(line)
    return cutText(this.isAscii ? asciiText(text) : text, this.columns - 1)
  }

  #status(): string {
    const seconds = Math.floor((Date.now() - this.#workingSince) / 1000)
    const elapsed = seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`
    const more = cleanLine(this.#working?.() ?? '')
    const turns = frames[this.isAscii ? 1 : 0]
    return this.#row(`${turns[this.#frame % turns.length]} working ${elapsed}${more === '' ? '' : ` · ${more}`}`)
  }
}

/** Keys that bring back earlier lines. */
const ways: Readonly<Record<string, 'older' | 'newer'>> = {
  up: 'older',
  down: 'newer',
  'ctrl-p': 'older',
  'ctrl-n': 'newer',
}

/** Node.js 24 and later draw a mark before the lines of some texts, where Node.js 20 draws none. */
function keepPlain(editor: Editor): void {
  const mark = Object.getOwnPropertySymbols(editor).find(({ description }) => description === '_isMultiline')
  if (mark !== undefined) Object.defineProperty(editor, mark, { get: () => false, set: () => {} })
}

/** The name of a key; `newline` begins another line without submitting. */
function nameOf(text: string | undefined, { name, ctrl, meta, shift, sequence }: Key): string {
  // Shift-Enter, on terminals that distinguish it from Enter; Ctrl-J; Alt-Enter.
  if (sequence === '\x1b[13;2u' || name === 'enter' || (name === 'return' && (meta || shift))) return 'newline'
  if (name === 'return') return 'enter'
  if (ctrl && name !== undefined) return `ctrl-${name}`
  if (name === 'escape') return 'escape'
  if (text !== undefined && !meta && [...text].length === 1 && text > ' ' && text !== '\x7f') return text
  return name ?? ''
}
