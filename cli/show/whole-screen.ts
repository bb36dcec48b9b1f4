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
/** Of a terminal that does not say how large it is. */
const USUAL = { columns: 80, rows: 24 }

/** A key as Node tells it. */
interface Pressed {
  readonly name?: string
  readonly sequence?: string
  readonly ctrl?: boolean
  readonly meta?: boolean
  readonly shift?: boolean
}

/** The terminal's second page, with every key as it is pressed; what stood on the first one is there again afterwards. */
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
        // A size that the environment names would be that of the start.
        const env = { ...io.env, COLUMNS: undefined }
        print(
          new Output({ env, stderr: io.stderr, stdout: { write, isTTY: true, columns: Math.max(1, width) } }, 'human'),
        )
        return text
          .replace(/\n$/, '')
          .split('\n')
          .map(line => fitted(line, width))
      },
      draw(lines) {
        if (!isOpen) return
        // A terminal that is at the end of a full line would clear its last character, and scroll at a break behind the last line.
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

/** A line no wider than `width`; colours take no columns, and end with it. */
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
  // A character is told as it is typed: `G` is another key than `g`.
  if (text !== undefined && text.length === 1 && text > ' ') return text
  return name ?? sequence
}
