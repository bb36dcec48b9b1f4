/** Kinds of ACP that change files. */
const WRITES: ReadonlySet<string> = new Set(['edit', 'delete', 'move'])
/** Commands that an agent may run while it does what another agent asked for: those that answer, and that read. */
const ALLOWED: Readonly<Record<string, ReadonlySet<string>>> = {
  ch: new Set(['list', 'send', 'reply', 'recv']),
  network: new Set(['send', 'inbox', 'peers', 'threads', 'directs', 'work', 'status', 'usage']),
}
const CHANNELS: ReadonlySet<string> = new Set(['list', 'get', 'show'])
/** What makes something else of a message. */
const CHANGES = 'promote'
/** Shells that agents put around a command, by their usual paths. */
const SHELL = /^(?:(?:\/usr)?\/bin\/)?(?:bash|sh|zsh|dash)$/
/** Shells within each other: the one of the agent, and the one that its model writes. */
const MOST_SHELLS = 2
/** How the prompts of this daemon name its program where a shell may not find it. */
const VARIABLE = '$SVC_BIN'
const BY_VARIABLE = /^(?:"\$(?:SVC_BIN|\{SVC_BIN\})"|\$(?:SVC_BIN|\{SVC_BIN\}))(?=[ \t]|$)/
/** Options that have the command talk to another service. */
const ELSEWHERE = /^--(?:endpoint|home)(?:=|$)/

/** What an agent wants to do. */
export interface WantedCall {
  /** Of ACP. */
  readonly kind: string
  /** Of a command that the daemon is to start. */
  readonly argv?: readonly string[] | undefined
  /** Of a command as its agent tells it, which may be a line for a shell. */
  readonly command?: string | undefined
  /** The path of this service's program, as it is told to agents. */
  readonly program?: string | undefined
  /** The command gets variables of the agent's choice, by which it can become another one. */
  readonly setsEnvironment?: boolean | undefined
}

/**
 * Why something is refused in a turn that another agent began; undefined: it is not. Files are not changed, and commands are those of
 * this service by which agents talk, written plainly: what a shell would expand is not judged.
 */
export function refusalOf({ kind, argv, command, program, setsEnvironment = false }: WantedCall): string | undefined {
  if (WRITES.has(kind)) return 'a message of another agent may not lead to changes of files'
  if (kind !== 'execute') return undefined
  const words = argv === undefined || argv.length === 1 ? wordsOf(argv?.[0] ?? command ?? '') : argv
  if (!setsEnvironment && words !== undefined && isAllowed(unwrapped(words), program)) return undefined
  return 'a message of another agent may lead to `svc network` and `svc ch` commands only, without shell syntax and variables'
}

/** The words that a shell is handed as a line, where a command is that of a shell. */
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
 * A plain word, or a part of one that a shell takes as it is: in quotes, or behind a backslash. An exclamation mark at the end of a
 * word means nothing to a shell, also to one that a person types into.
 */
const PART = /[A-Za-z0-9_./:@%+=,-]+|'[^'\0]*'|"(?:[^"$`\\!\0]|!(?=[ \t"])|\\["\\$`])*"|\\[^\n\r\0]/y
/** What a backslash in double quotes protects. */
const ESCAPED = /\\(["\\$`])/g

/** A part of a word without what protects it. */
function plain(part: string): string {
  if (part.startsWith("'")) return part.slice(1, -1)
  if (part.startsWith('"')) return part.slice(1, -1).replace(ESCAPED, '$1')
  return part.startsWith('\\') ? part.slice(1) : part
}

/** The words of a line as a shell reads them; undefined where it would do more than to run one program with them. */
export function wordsOf(line: string): string[] | undefined {
  const words: string[] = []
  const text = line.trim().replace(BY_VARIABLE, `'${VARIABLE}'`)
  let at = 0
  while (at < text.length) {
    let word = ''
    const begun = at
    for (PART.lastIndex = at; ; PART.lastIndex = at) {
      const [part] = PART.exec(text) ?? []
      if (part === undefined) break
      word += plain(part)
      at += part.length
    }
    if (at === begun) return undefined
    words.push(word)
    const gap = /[ \t]*/y
    gap.lastIndex = at
    const space = gap.exec(text)?.[0].length ?? 0
    if (space === 0 && at < text.length) return undefined
    at += space
  }
  return words
}
