/** Kinds of ACP that change files. */
const WRITES: ReadonlySet<string> = new Set(['edit', 'delete', 'move'])
/** Commands that an agent may run while it does what another agent asked for: those that answer, and that read. */
const ALLOWED: Readonly<Record<string, ReadonlySet<string>>> = {
  ch: new Set(['list', 'send', 'reply', 'recv']),
  network: new Set(['send', 'inbox', 'peers', 'threads', 'directs', 'work', 'status', 'usage']),
}
const CHANNELS: ReadonlySet<string> = new Set(['list', 'get'])
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
  /** The command gets variables of the agent's choice, by which it can become another one. */
  readonly setsEnvironment?: boolean | undefined
}

/**
 * Why something is refused in a turn that another agent began; undefined: it is not. Files are not changed, and commands are those of
 * this service by which agents talk, written plainly: what a shell would expand is not judged.
 */
export function refusalOf({ kind, argv, command, setsEnvironment = false }: WantedCall): string | undefined {
  if (WRITES.has(kind)) return 'a message of another agent may not lead to changes of files'
  if (kind !== 'execute') return undefined
  const words = argv === undefined || argv.length === 1 ? wordsOf(argv?.[0] ?? command ?? '') : argv
  if (!setsEnvironment && words !== undefined && isAllowed(words)) return undefined
  return 'a message of another agent may lead to `svc network` and `svc ch` commands only, without shell syntax and variables'
}

function isAllowed([program, group = '', verb = '', ...rest]: readonly string[]): boolean {
  if (program !== 'svc' || rest.some(word => ELSEWHERE.test(word))) return false
  if (group === 'network' && verb === 'channels') return CHANNELS.has(rest[0] ?? '')
  return Object.hasOwn(ALLOWED, group) && (ALLOWED[group]?.has(verb) ?? false)
}

/** A plain word, or a part of one in quotes within which a shell expands nothing. */
const PART = /[A-Za-z0-9_./:@%+=,-]+|'[^'\0]*'|"[^"$`\\!\0]*"/y

/** The words of a line as a shell reads them; undefined where it would do more than to run one program with them. */
export function wordsOf(line: string): string[] | undefined {
  const words: string[] = []
  const text = line.trim()
  let at = 0
  while (at < text.length) {
    let word = ''
    const begun = at
    for (PART.lastIndex = at; ; PART.lastIndex = at) {
      const [part] = PART.exec(text) ?? []
      if (part === undefined) break
      word += part.startsWith("'") || part.startsWith('"') ? part.slice(1, -1) : part
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
