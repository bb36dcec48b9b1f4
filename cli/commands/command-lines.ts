import type { CommandData, ModuleCommand, RouteCommand } from './command-data.js'

/**
 * JSON of the commands with one command per line, so that {@link readCommandLines} parses only the needed ones: a CLI call needs
 * one or two of three hundred.
 */
export function writeCommandLines({ version, routes, commands }: CommandData): string {
  const lines = (all: readonly (RouteCommand | ModuleCommand)[]) =>
    all.map(({ kind, path, summary, ...rest }) => JSON.stringify({ kind, path, summary, ...rest })).join(',\n')
  const text = `{"version":${JSON.stringify(version)},"routes":[\n${lines(routes)}\n],"commands":[\n${lines(commands)}\n]}\n`
  // V8 reads ASCII several times as fast.
  return text.replace(/[^\n-~]/g, unit => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

/** @throws Error for a text in another form than that of {@link writeCommandLines} */
export function readCommandLines(text: string): CommandData {
  const lines = text.split('\n')
  const [first = ''] = lines
  const [middle, end] = [lines.indexOf('],"commands":['), lines.lastIndexOf(']}')]
  const between = (from: number, to: number) =>
    lines.slice(from + 1, to).flatMap(line => (line === '' ? [] : [new LazyCommand(line)]))
  const data = { routes: between(0, middle), commands: between(middle, end) }
  // Each member exists, parsed or not: see `members`.
  return { ...JSON.parse(`${first}]}`), ...data } as CommandData
}

const head = /^\{"kind":"(\w+)","path":"([^"\\]*)","summary":"/

/** A command of a line; members that are not needed to find it are parsed on access. */
class LazyCommand {
  readonly kind: string
  readonly path: string
  readonly #line: string
  #parsed: Record<string, unknown> | undefined

  /** @throws Error for a line in another form than that of {@link writeCommandLines} */
  constructor(line: string) {
    const [, kind, path] = head.exec(line) ?? []
    if (kind === undefined || path === undefined) throw new Error('no command in this line')
    this.kind = kind
    this.path = path
    this.#line = line
  }

  get(member: string): unknown {
    this.#parsed ??= JSON.parse(this.#line.replace(/,$/, '')) as Record<string, unknown>
    return this.#parsed[member]
  }
}

/** Every other member of a command; the compiler reports a missing one. */
const members = {
  summary: 1,
  args: 1,
  options: 1,
  method: 1,
  url: 1,
  body: 1,
  stream: 1,
  view: 1,
  find: 1,
  follow: 1,
  done: 1,
  shorthands: 1,
  scoped: 1,
  module: 1,
  local: 1,
  export: 1,
} satisfies Record<Exclude<keyof RouteCommand | keyof ModuleCommand, 'kind' | 'path'>, 1>

for (const member of Object.keys(members))
  Object.defineProperty(LazyCommand.prototype, member, {
    get(this: LazyCommand) {
      return this.get(member)
    },
  })
