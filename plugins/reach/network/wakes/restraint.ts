/** ACP kinds of calls that change files. */
const WRITES: ReadonlySet<string> = new Set(['edit', 'delete', 'move'])
/** Commands allowed during a turn started by another agent: those that answer or read. */
const ALLOWED: Readonly<Record<string, ReadonlySet<string>>> = {
  ch: new Set(['list', 'send', 'reply', 'recv']),
  network: new Set(['send', 'inbox', 'peers', 'threads', 'directs', 'work', 'status', 'usage']),
}
const CHANNELS: ReadonlySet<string> = new Set(['list', 'get', 'show'])
/** Subcommand that turns a message into a task. */
const CHANGES = 'promote'
/** Shells that agents wrap around a command, by their usual paths. */
const SHELL = /^(?:(?:\/usr)?\/bin\/)?(?:bash|sh|zsh|dash)$/
/** Nested shells: one of the agent, and one written by its model. */
const MOST_SHELLS = 2
/** Name of the program in prompts, for shells that may not find it. */
const VARIABLE = '$SVC_BIN'
const BY_VARIABLE = /^(?:"\$(?:SVC_BIN|\{SVC_BIN\})"|\$(?:SVC_BIN|\{SVC_BIN\}))(?=[ \t]|$)/
/** Options that direct the command to another service. */
const ELSEWHERE = /^--(?:endpoint|home)(?:=|$)/

/** A call that an agent wants to make. */
export interface WantedCall {
  /** Tool kind of ACP. */
  readonly kind: string
  /** Arguments of a command that the daemon starts. */
  readonly argv?: readonly string[] | undefined
  /** A command as reported by its agent, possibly a shell line. */
  readonly command?: string | undefined
  /** Path of this service's program, as agents know it. */
  readonly program?: string | undefined
  /** Whether the command gets variables chosen by the agent, which could change its meaning. */
  readonly setsEnvironment?: boolean | undefined
}

/**
 * Why a call is refused in a turn started by another agent; undefined if allowed. Files must not be changed, and only
 * this service's commands for conversations are allowed, as plain words: shell expansions cannot be judged.
 */
export function refusalOf({ kind, argv, command, program, setsEnvironment = false }: WantedCall): string | undefined {
  if (WRITES.has(kind)) return 'a turn started by a message of another agent may not change files'
  if (kind !== 'execute') return undefined
  const words = argv === undefined || argv.length === 1 ? wordsOf(argv?.[0] ?? command ?? '') : argv
  if (!setsEnvironment && words !== undefined && isAllowed(unwrapped(words), program)) return undefined
  return 'a turn started by a message of another agent may run only `svc network` and `svc ch` commands, without shell syntax and variables'
}

/** Words of the inner line, if the command is a shell with a line. */
function unwrapped(words: readonly string[]): readonly string[] {
  let inner = words
  for (let n = 0; n < MOST_SHELLS; n++) {
    const [shell = '', ...rest] = inner
    const isShell = SHELL.test(shell) && (rest.length === 2 ? /^-l?c$/.test(rest[0] ?? '') : rest.length === 3)
    if (!isShell || (rest.length === 3 && (rest[0] !== '-l' || rest[1] !== '-c'))) return inner
    inner = wordsOf(rest.at(-1) ?? '') ?? []
  }
  return inner
}

function isAllowed([name, group = '', verb = '', ...rest]: readonly string[], program: string | undefined): boolean {
  const isOwn = name === 'svc' || (program !== undefined && (name === program || name === VARIABLE))
  if (!isOwn || rest.some(word => ELSEWHERE.test(word)) || rest[0] === CHANGES) return false
  if (group === 'network' && verb === 'channels') return CHANNELS.has(rest[0] ?? '')
  return Object.hasOwn(ALLOWED, group) && (ALLOWED[group]?.has(verb) ?? false)
}

/**
 * A plain word or a part that a shell takes literally: quoted, or after a backslash. An exclamation mark at the end of
 * a word has no meaning to a shell, not even an interactive one.
 */
const PART = /[A-Za-z0-9_./:@%+=,-]+|'[^'\0]*'|"(?:[^"$`\\!\0]|!(?=[ \t"])|\\["\\$`])*"|\\[^\n\r\0]/y
/** Characters that a backslash escapes in double quotes. */
const ESCAPED = /\\(["\\$`])/g

/** Removes quotes and escapes from a part of a word. */
function plain(part: string): string {
  if (part.startsWith("'")) return part.slice(1, -1)
  if (part.startsWith('"')) return part.slice(1, -1).replace(ESCAPED, '$1')
  return part.startsWith('\\') ? part.slice(1) : part
}

/** The words of a line as a shell reads them; undefined if the shell would do more than run one program. */
export function wordsOf(line: string): string[] | undefined {
  const words: string[] = []
  const text = line.trim().replace(BY_VARIABLE, `'${VARIABLE}'`)
  let at = 0
  while (at < text.length) {
    let word = ''
    const start = at
    for (PART.lastIndex = at; ; PART.lastIndex = at) {
      const [part] = PART.exec(text) ?? []
      if (part === undefined) break
      word += plain(part)
      at += part.length
    }
    if (at === start) return undefined
    words.push(word)
    const gap = /[ \t]*/y
    gap.lastIndex = at
    const space = gap.exec(text)?.[0].length ?? 0
    if (space === 0 && at < text.length) return undefined
    at += space
  }
  return words
}
