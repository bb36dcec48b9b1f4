import { command } from '../../../../kernel/kit/commands/command-line.js'
import { type CommandContext, type CommandOutput, messageOf } from '../../../../kernel/plugin.js'
import { bridgeColumns, type Frame, runColumns, sessionColumns, summaryOf } from './top.js'
import { many } from './words.js'

type Screen = Parameters<Parameters<NonNullable<CommandContext['wholeScreen']>>[0]>[0]

/** Columns of the mark before a row. */
const MARK = 2

/** Orders of rows by name. */
const ORDERS = {
  default: undefined,
  newest: ({ since }: Row) => -since,
  oldest: ({ since }: Row) => since,
  status: ({ status }: Row) => status,
  agent: ({ agent }: Row) => agent,
} as const
type Order = keyof typeof ORDERS

/** A run, a session or a bridge. */
interface Row {
  readonly id: string
  readonly kind: 'run' | 'session' | 'bridge'
  readonly of: object
  readonly status: string
  readonly agent: string
  /** Epoch milliseconds; 0: unknown. */
  readonly since: number
  /** Commands for details, each with a description. */
  readonly closer: readonly (readonly [what: string, command: string])[]
}

interface Part {
  readonly title: string
  readonly columns: Parameters<CommandOutput['table']>[1]
  readonly rows: readonly Row[]
}

const HELP = [
  ['q, Ctrl-C', 'quit'],
  ['j k, arrows', 'select a row'],
  ['PgUp PgDn, g G', 'a page, the first, the last row'],
  ['Enter', 'commands with details of the row'],
  ['s', 'sort by the next column'],
  ['p', 'pause or continue'],
  ['r, Space', 'refresh now'],
  ['?, Esc', 'this help, and back'],
] as const

/** The screen of `svc top` with its keys. */
export class TopScreen {
  #frame: Frame
  #panel: 'help' | Row | undefined
  /** Id of the selected row, which stays selected when rows are added or removed. */
  #selected: string | undefined
  #at = 0
  /** First visible line. */
  #top = 0
  #order: Order = 'default'
  #isPaused = false
  #problem = ''
  #isLooking = false
  #ticks = 0
  #end: (command: string | undefined) => void = () => {}

  constructor(
    private readonly screen: Screen,
    first: Frame,
    private readonly of: {
      readonly readFrame: (isWhole?: boolean) => Promise<Frame>
      readonly signal: AbortSignal
      readonly seconds: number
    },
  ) {
    this.#frame = first
  }

  /** Runs until the person quits. Resolves with the last shown command, which is printed on exit. */
  run(): Promise<string | undefined> {
    const { signal } = this.of
    const ended = new Promise<string | undefined>(resolve => {
      this.#end = resolve
      signal.addEventListener('abort', () => resolve(undefined), { once: true })
    })
    this.screen.onKey(key => {
      if (key === 'tick') this.#tick()
      else {
        this.#press(key)
        this.#draw()
      }
    })
    this.#draw()
    return ended
  }

  #tick(): void {
    if (!this.#isPaused && ++this.#ticks % this.of.seconds === 0) void this.#refresh()
  }

  async #refresh(isWhole?: boolean): Promise<void> {
    // A slow daemon must not get overlapping requests.
    if (this.#isLooking) return
    this.#isLooking = true
    try {
      this.#frame = await this.of.readFrame(isWhole)
      this.#problem = ''
    } catch (error) {
      // The daemon may be restarting; the last state stays until it responds.
      this.#problem = messageOf(error)
    }
    this.#isLooking = false
    if (!this.of.signal.aborted) this.#draw()
  }

  #press(key: string): void {
    const rows = this.#parts().flatMap(part => part.rows)
    const page = Math.max(1, this.screen.size.rows - 6)
    const by = { down: 1, j: 1, up: -1, k: -1, pagedown: page, pageup: -page, G: rows.length, end: rows.length }[key]
    if (key === 'q') this.#end(typeof this.#panel === 'object' ? this.#panel.closer[0]?.[1] : undefined)
    else if (key === '?') this.#panel = this.#panel === 'help' ? undefined : 'help'
    else if (key === 'p') this.#isPaused = !this.#isPaused
    else if (key === 'r' || key === 'space') void this.#refresh(true)
    else if (this.#panel !== undefined) {
      if (key === 'escape' || key === 'enter') this.#panel = undefined
    } else if (by !== undefined) this.#select(rows, this.#at + by)
    else if (key === 'g' || key === 'home') this.#select(rows, 0)
    else if (key === 's') {
      const orders = Object.keys(ORDERS) as Order[]
      this.#order = orders[(orders.indexOf(this.#order) + 1) % orders.length] as Order
    } else if (key === 'enter') this.#panel = rows[this.#at]
  }

  #select(rows: readonly Row[], at: number): void {
    this.#at = Math.max(0, Math.min(rows.length - 1, at))
    this.#selected = rows[this.#at]?.id
  }

  #draw(): void {
    const { columns, rows } = this.screen.size
    const head = this.screen.lines(out => this.#head(out), columns)
    const foot = this.screen.lines(out => out.line(this.#foot(out)), columns)
    const room = Math.max(1, rows - head.length - foot.length)
    const body = this.#panel === undefined ? this.#body(room) : this.#panelLines(this.#panel)
    const fill = Array.from({ length: Math.max(0, room - body.length) }, () => '')
    this.screen.draw([...head, ...body.slice(0, room), ...fill, ...foot].map(line => line))
  }

  #head(out: CommandOutput): void {
    const time = this.#frame.at === null ? '' : new Date(this.#frame.at).toLocaleTimeString('en-GB')
    const state = this.#isPaused ? out.color('yellow', 'paused') : `every ${this.of.seconds} s`
    out.line(`${out.color('bold', 'svc top')}  ${time}  ${state}`)
    for (const line of summaryOf(this.#frame, out)) out.line(line)
    if (this.#problem !== '') out.line(out.color('red', this.#problem))
  }

  #foot(out: CommandOutput): string {
    const keys = this.#panel
      ? 'Esc back  q quit'
      : `q quit  j/k select  Enter details  s sort: ${this.#order}  p pause  ? help`
    return out.color('dim', keys)
  }

  /** Visible lines around the selected row. */
  #body(room: number): string[] {
    const parts = this.#parts()
    const all = parts.flatMap(part => part.rows)
    const found = all.findIndex(({ id }) => id === this.#selected)
    this.#select(all, found < 0 ? this.#at : found)
    const lines: string[] = []
    let selectedLine = 0
    for (const { title, columns, rows } of parts) {
      const [head = '', header = '', ...cells] = this.screen.lines(out => {
        out.line(out.color('bold', title))
        if (rows.length > 0)
          out.table(
            rows.map(({ of }) => of),
            columns,
          )
      }, this.screen.size.columns - MARK)
      lines.push('', head)
      if (rows.length === 0) continue
      lines.push(`  ${header}`)
      for (const [index, cell] of cells.entries()) {
        const isSelected = rows[index]?.id === this.#selected
        if (isSelected) selectedLine = lines.length
        lines.push(isSelected ? this.#marked(cell) : `  ${cell}`)
      }
    }
    const most = Math.max(0, lines.length - room)
    // The header is visible together with the first row.
    const first = this.#at === 0 ? 0 : selectedLine
    if (first < this.#top) this.#top = first
    if (selectedLine >= this.#top + room) this.#top = selectedLine - room + 1
    this.#top = Math.min(this.#top, most)
    return lines.slice(this.#top, this.#top + room)
  }

  #marked(cell: string): string {
    const [line = ''] = this.screen.lines(out => out.line(out.color('inverse', `> ${cell}`)), this.screen.size.columns)
    return line
  }

  #panelLines(panel: 'help' | Row): string[] {
    return this.screen.lines(out => {
      out.line('')
      if (panel === 'help') for (const [key, what] of HELP) out.line(`  ${key.padEnd(16)}${what}`)
      else {
        out.line(out.color('bold', `${panel.kind} ${panel.id}`))
        for (const [name, value] of Object.entries(panel.of))
          if (name !== 'id' && value !== null && value !== '') out.line(`  ${name.padEnd(12)}${value}`)
        out.line('')
        for (const [what, next] of panel.closer) out.line(`  ${what.padEnd(12)}${next}`)
      }
    }, this.screen.size.columns)
  }

  #parts(): Part[] {
    const { runs, sessions, bridges } = this.#frame
    const parts: Part[] = [
      { title: many(runs.length, 'active run'), columns: runColumns, rows: runs.map(runRow) },
      {
        title: many(sessions.total, 'active session'),
        columns: sessionColumns,
        rows: sessions.rows.map(session => ({
          ...{ id: session.id, kind: 'session' as const, of: session, status: session.badge, agent: session.agent },
          since: Date.parse(session.updated_at),
          closer: [
            ['follow', command('session attach', session.id)],
            ['its history', command('session recap', session.id)],
            ['state', command('session status', session.id)],
          ],
        })),
      },
      ...(bridges === null
        ? []
        : [
            {
              title: many(bridges.length, 'bridge'),
              columns: bridgeColumns,
              rows: bridges.map(bridge => ({
                ...{ id: bridge.id, kind: 'bridge' as const, of: bridge, status: bridge.status, agent: bridge.name },
                since: 0,
                closer: [
                  ['state', command('bridge get', bridge.id)],
                  ['check', command('bridge verify', bridge.id)],
                  ['messages', command('bridge deliveries', bridge.id)],
                ] as const,
              })),
            },
          ]),
    ]
    const by = ORDERS[this.#order]
    if (!by) return parts
    return parts.map(part => ({
      ...part,
      rows: part.rows.toSorted((a, b) => (by(a) < by(b) ? -1 : by(a) > by(b) ? 1 : 0)),
    }))
  }
}

function runRow(run: Frame['runs'][number]): Row {
  const { id, kind, status, agent, since } = run
  const show = kind === 'task' ? command('task run show', id) : command('automation runs get', id)
  return {
    ...{ id, kind: 'run', of: run, status, agent: agent ?? '', since: since === null ? 0 : Date.parse(since) },
    closer: [['state', show], ...(kind === 'task' ? ([['why', command('why', id)]] as const) : [])],
  }
}
