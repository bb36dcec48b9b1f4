import { emitKeypressEvents } from 'node:readline'
import type { CommandScreen } from '../../kernel/kit/commands/context.js'
import type { Io, Keyboard } from '../io.js'
import { Output } from './output.js'
import { cutText, textWidth } from './text.js'

const ENTER = '\x1b[?1049h\x1b[?25l\x1b[H\x1b[2J'
const LEAVE = '\x1b[?25h\x1b[?1049l'
const HOME = '\x1b[H'
const CLEAR_LINE = '\x1b[K'
const CLEAR_BELOW = '\x1b[J'
/** Default size of a terminal. */
const USUAL = { columns: 80, rows: 24 }

/** A key in the form of Node. */
interface Pressed {
  readonly name?: string
  readonly sequence?: string
  readonly ctrl?: boolean
  readonly meta?: boolean
  readonly shift?: boolean
}

/** Shows the terminal's alternate screen with single key presses; the main screen is restored afterwards. */
export async function onWholeScreen<T>(
  use: (screen: CommandScreen) => Promise<T>,
  io: Pick<Io, 'stdout' | 'stderr' | 'env' | 'signal'>,
  { input, interrupt, onResize, onEnd }: Keyboard,
): Promise<T> {
  const { stdout, signal } = io
  const takers: ((key: string) => void)[] = []
  const tell = (key: string) => {
    for (const take of takers) take(key)
  }
  const press = (text: string | undefined, pressed: Pressed) => {
    if (pressed.ctrl && pressed.name === 'c') return interrupt()
    const key = keyOf(text, pressed)
    if (key !== undefined) tell(key)
  }
  const timer = setInterval(() => tell('tick'), 1000)
  let isOpen = true
  const leave = () => {
    if (!isOpen) return
    isOpen = false
    clearInterval(timer)
    input.off('keypress', press).off('end', interrupt)
    input.setRawMode(false)
    input.pause()
    stdout.write(LEAVE)
  }
  const forget = [onEnd(leave), onResize(() => tell('resize'))]
  emitKeypressEvents(input)
  input.setRawMode(true)
  input.on('keypress', press).on('end', interrupt)
  input.resume()
  stdout.write(ENTER)
  signal.addEventListener('abort', leave, { once: true })
  try {
    return await use({
      get size() {
        return { columns: stdout.columns || USUAL.columns, rows: stdout.rows || USUAL.rows }
      },
      lines(print, width) {
        let text = ''
        const write = (more: string) => {
          text += more
        }
        // A size from the environment would be that at the start.
        const env = { ...io.env, COLUMNS: undefined }
        const stdout = { write, isTTY: true, columns: Math.max(1, width) }
        print(new Output({ env, stderr: io.stderr, stdout }, 'human', false, false))
        return text
          .replace(/\n$/, '')
          .split('\n')
          .map(line => fitted(line, width))
      },
      draw(lines) {
        if (!isOpen) return
        // A clear at the end of a full line would erase its last character, and a line break after the last line would scroll.
        const shown = lines.slice(0, this.size.rows).map(line => `${CLEAR_LINE}${line}`)
        const rest = shown.length < this.size.rows ? `\r\n${CLEAR_BELOW}` : ''
        stdout.write(`${HOME}${shown.join('\r\n')}${rest}`)
      },
      onKey: take => takers.push(take),
    })
  } finally {
    signal.removeEventListener('abort', leave)
    leave()
    for (const undo of forget) undo()
  }
}

/** A line cut to `width`; colours take no columns, and are closed at its end. */
function fitted(line: string, width: number): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: colours
  const parts = line.split(/(\x1b\[[\d;]*m)/)
  if (textWidth(parts.filter((_, at) => at % 2 === 0).join('')) <= width) return line
  let left = width
  let made = ''
  for (const [at, part] of parts.entries()) {
    if (at % 2 === 1) made += part
    else {
      const cut = left > 0 ? cutText(part, left) : ''
      left -= textWidth(part)
      made += cut
    }
  }
  return made
}

function keyOf(text: string | undefined, { name, sequence, ctrl, meta }: Pressed): string | undefined {
  if (name === 'escape') return 'escape'
  if (meta) return undefined
  if (ctrl) return name === undefined ? undefined : `ctrl-${name}`
  if (name === 'return') return 'enter'
  // A character keeps its case: `G` is another key than `g`.
  if (text !== undefined && text.length === 1 && text > ' ') return text
  return name ?? sequence
}
