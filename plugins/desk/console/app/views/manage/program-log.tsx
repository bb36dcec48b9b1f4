import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { linkTo } from '../../core/router.js'
import { SharedStream } from '../../core/shared-stream.js'
import { text } from '../../text.js'
import { Columns } from '../../ui/columns.js'
import { Empty, Page } from '../../ui/parts.js'

const words = text.programLog
const LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal'] as const
/** Maximum number of lines. */
const MOST = 2000
/** Lines that arrive within this time are rendered together. */
const GATHER_MS = 100

interface Line {
  readonly n: number
  readonly level: string
  readonly time: string
  readonly plugin: string
  readonly message: string
  readonly rest: string
}

let count = 0

/** A line of the log. It is always rendered as text. */
function lineOf(data: unknown): Line {
  const { level, time, plugin, msg, ...rest } = Object(data) as Record<string, unknown>
  const more = Object.keys(rest).length === 0 ? '' : JSON.stringify(rest)
  return {
    n: count++,
    level: typeof level === 'string' ? level : 'info',
    time: typeof time === 'string' ? time : '',
    plugin: typeof plugin === 'string' ? plugin : '',
    message: typeof msg === 'string' ? msg : '',
    rest: more,
  }
}

/** Tabs for the events of the daemon and its log. */
export const LogTabs = ({ current }: { readonly current: 'events' | 'program' }) => (
  <nav class="tabs" aria-label={text.manage.logs}>
    <a href={linkTo('manage', 'logs')} aria-current={current === 'events' ? 'page' : undefined}>
      {words.events}
    </a>
    <a href={linkTo('manage', 'logs', 'program')} aria-current={current === 'program' ? 'page' : undefined}>
      {words.program}
    </a>
  </nav>
)

/** The live log of the daemon, filtered by minimum level and plugin. */
export function ProgramLog() {
  const [lines, setLines] = useState<readonly Line[]>([])
  const [level, setLevel] = useState('info')
  const [plugin, setPlugin] = useState('')
  const [paused, setPaused] = useState(false)
  const isPaused = useRef(false)
  isPaused.current = paused
  useEffect(() => follow(setLines, () => isPaused.current), [])
  const plugins = useMemo(() => [...new Set(lines.map(one => one.plugin))].filter(Boolean).sort(), [lines])
  const from = LEVELS.indexOf(level as (typeof LEVELS)[number])
  const shown = lines.filter(
    one => LEVELS.indexOf(one.level as (typeof LEVELS)[number]) >= from && (plugin === '' || one.plugin === plugin),
  )
  return (
    <Columns>
      <Page title={text.manage.logs} command="svc logs --follow">
        <LogTabs current="program" />
        <div class="toolbar">
          <div class="field">
            <label for="log-level">{words.level}</label>
            <select id="log-level" value={level} onChange={event => setLevel(event.currentTarget.value)}>
              {LEVELS.map(name => (
                <option key={name} value={name}>
                  {name}
                </option>
              ))}
            </select>
          </div>
          <div class="field">
            <label for="log-plugin">{words.plugin}</label>
            <select id="log-plugin" value={plugin} onChange={event => setPlugin(event.currentTarget.value)}>
              <option value="">{words.all}</option>
              {plugins.map(name => (
                <option key={name} value={name}>
                  {name}
                </option>
              ))}
            </select>
          </div>
          <button type="button" aria-pressed={paused} onClick={() => setPaused(!paused)}>
            {paused ? words.resume : words.pause}
          </button>
        </div>
        <Lines of={shown} />
      </Page>
    </Columns>
  )
}

/** Collects the lines of the stream. After an interruption the daemon sends the end of the log again, so the list starts over. */
function follow(
  set: (change: (lines: readonly Line[]) => readonly Line[]) => void,
  isPaused: () => boolean,
): () => void {
  const stream = new SharedStream(`log ${Math.random()}`, () => '/api/settings/observability/log-tail')
  let waiting: Line[] = []
  let timer: ReturnType<typeof setTimeout> | undefined
  let wasCut = false
  const unlink = stream.link.subscribe(link => {
    if (link !== 'live') wasCut = true
    else if (wasCut) {
      wasCut = false
      set(() => [])
    }
  })
  const draw = () => {
    timer = undefined
    if (isPaused()) return
    const added = waiting
    waiting = []
    set(lines => [...lines, ...added].slice(-MOST))
  }
  const stop = stream.follow(({ event, data }) => {
    if (event !== 'log') return
    waiting.push(lineOf(data))
    if (waiting.length > MOST) waiting.shift()
    timer ??= setTimeout(draw, GATHER_MS)
  })
  return () => {
    clearTimeout(timer)
    unlink()
    stop()
  }
}

/** Scrolls to new lines while the end is visible, and stays in place while older lines are. */
function Lines({ of: lines }: { readonly of: readonly Line[] }) {
  const box = useRef<HTMLDivElement>(null)
  const atEnd = useRef(true)
  useEffect(() => {
    if (atEnd.current && box.current) box.current.scrollTop = box.current.scrollHeight
  }, [lines])
  if (lines.length === 0) return <Empty>{words.none}</Empty>
  return (
    <div
      class="log"
      ref={box}
      tabIndex={0}
      role="region"
      aria-label={words.program}
      onScroll={({ currentTarget: at }) => {
        atEnd.current = at.scrollHeight - at.scrollTop - at.clientHeight < 40
      }}
    >
      {lines.map(({ n, level, time, plugin, message, rest }) => (
        <p key={n} class={`line ${level}`}>
          <time>{time.slice(11, 23)}</time> <b>{level}</b> <span class="from">{plugin}</span> {message}{' '}
          {rest && <span class="rest">{rest}</span>}
        </p>
      ))}
    </div>
  )
}
