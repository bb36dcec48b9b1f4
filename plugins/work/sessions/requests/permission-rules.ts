import { shellWord } from '../../../../kernel/kit/commands/command-line.js'
import type { PermissionMode } from '../../../agents/agents/api.js'
import type { PermissionParams, ToolCallFields } from '../acp/schemas.js'

/** A person's answers to a permission request. */
export type Decision = 'allow-once' | 'allow-always' | 'reject-once' | 'reject-always'

/** What the protocol wants for an answer. */
export type PermissionOutcome =
  | { readonly outcome: { readonly outcome: 'cancelled' } }
  | { readonly outcome: { readonly outcome: 'selected'; readonly optionId: string } }

export const CANCELLED: PermissionOutcome = { outcome: { outcome: 'cancelled' } }

export type PermissionOption = NonNullable<PermissionParams['options']>[number]

/** What an agent wants to do, as far as its words tell. */
export interface WantedAction {
  readonly kind: string
  readonly title: string
  /** For a command: its words joined by blanks, and the words where they are known. */
  readonly command?: string
  readonly argv?: readonly string[]
  /** The command of a call that has not told its input, as its content shows it. What covers what does not go by it. */
  readonly written?: string
  /** The command as a person reads it, where that says more. */
  readonly shown?: string
  /** Paths as the agent wrote them. */
  readonly paths: readonly string[]
  /** What it wants to change in files, as far as it shows that. */
  readonly diffs: readonly WantedDiff[]
}

/** A file before and after; without `oldText` it is new. */
export interface WantedDiff {
  readonly path: string
  readonly oldText?: string
  readonly newText: string
}

/** Kinds of tool calls that change nothing (ACP ToolKind). */
const READING: ReadonlySet<string> = new Set(['read', 'search'])
const EDITING: ReadonlySet<string> = new Set(['edit', 'delete', 'move'])

export const isReading = (kind: string): boolean => READING.has(kind)

/** What a mode says by itself to what an agent wants to do; `ask` leaves it to a person. */
export function decideByMode(mode: PermissionMode, kind: string, isOutside = false): 'allow' | 'reject' | 'ask' {
  switch (mode) {
    case 'approve-all':
      return isOutside && !READING.has(kind) ? 'ask' : 'allow'
    case 'deny-all':
      return 'reject'
    case 'approve-reads':
      return READING.has(kind) && !isOutside ? 'allow' : 'ask'
  }
}

/** Does a mode want a question before a tool call of this kind. A command may only read: that alone is no breach of `approve-reads`. */
export function mustAsk(mode: PermissionMode, kind: string): boolean {
  return mode !== 'approve-all' && (EDITING.has(kind) || (mode === 'deny-all' && kind === 'execute'))
}

/**
 * The option that stands for a decision. By kind, never by position, for agents order them as they like and leave some
 * out. Undefined when answering with any of them would say more than was decided.
 */
export function optionFor(options: readonly PermissionOption[], decision: Decision): PermissionOption | undefined {
  const kinds: Readonly<Record<Decision, readonly string[]>> = {
    'allow-once': ['allow_once'],
    // "Always" is kept on this side as well, so the smaller option does.
    'allow-always': ['allow_always', 'allow_once'],
    'reject-once': ['reject_once', 'reject_always'],
    'reject-always': ['reject_always', 'reject_once'],
  }
  for (const kind of kinds[decision]) {
    const option = options.find(candidate => candidate.kind === kind)
    if (option) return option
  }
  return undefined
}

/** The option with which a mode allows: once where that is offered. */
export function automaticAllow(options: readonly PermissionOption[]): PermissionOption | undefined {
  return options.find(({ kind }) => kind === 'allow_once') ?? options.find(({ kind }) => kind === 'allow_always')
}

/** The option that answers a request; undefined when it is cancelled, or when none says what was decided. */
export function chooseOption(
  options: readonly PermissionOption[],
  decision: Decision | 'cancelled',
  byMode: boolean,
): PermissionOption | undefined {
  if (decision === 'cancelled') return undefined
  return decision === 'allow-once' && byMode ? automaticAllow(options) : optionFor(options, decision)
}

/** The answer to a request: an option, or `cancelled` where none fits. */
export function outcomeOf(option: PermissionOption | undefined): PermissionOutcome {
  return option ? { outcome: { outcome: 'selected', optionId: option.optionId } } : CANCELLED
}

/** Reads from a tool call what is to be done; members that it leaves out may be known from earlier updates of it. */
export function wantedAction(call: ToolCallFields | undefined, known: Partial<ToolCallFields> = {}): WantedAction {
  const rawInput = call?.rawInput ?? known.rawInput
  const told = call?.kind ?? known.kind
  const written = told === 'execute' ? (writtenCommand(call) ?? writtenCommand(known)) : undefined
  const argv = commandOf(rawInput)
  const locations = call?.locations ?? known.locations ?? []
  const diffs = (call?.content ?? known.content ?? []).filter(({ type, path }) => type === 'diff' && isText(path))
  const paths = [...new Set([...locations.map(({ path }) => path), ...diffs.map(({ path }) => path as string)])]
  const given = call?.kind ?? known.kind
  const kind = given && given !== 'other' ? given : argv ? 'execute' : diffs.length > 0 ? 'edit' : (given ?? 'other')
  return {
    kind,
    title: call?.title ?? known.title ?? call?.name ?? known.name ?? kind,
    paths,
    diffs: diffs.map(({ path, oldText, newText }) => ({
      path: String(path),
      ...(isText(oldText) && { oldText }),
      newText: typeof newText === 'string' ? newText : '',
    })),
    ...(argv && { command: argv.join(' '), argv }),
    // A word with blanks in it is one word for a person too.
    ...(argv &&
      argv.length > 1 &&
      argv.some(word => shellWord(word) !== word) && { shown: argv.map(shellWord).join(' ') }),
    ...(!argv && written && { written: written.join(' ') }),
  }
}

/**
 * Does an answered request cover this very command: the same words, or a shell that is handed them as one, from the folder of the
 * session at most. What did not say its command covers none.
 * @param root the folder of the session, to which some agents change first
 */
export function coversCommand(action: WantedAction, argv: readonly string[], root?: string): boolean {
  const told = action.command ?? action.written
  if (action.kind !== 'execute' || told === undefined) return false
  if (argv.join(' ') === told) return true
  if (argv.length !== 3 || !/^-[a-z]*c$/.test(argv[1]!)) return false
  const names = root === undefined ? [] : [shellWord(root), `'${root.replaceAll("'", "'\\''")}'`]
  return argv[2] === told || names.some(name => argv[2] === `cd ${name} && ${told}`)
}

/** A file that an agent has the daemon write. */
export interface WantedWrite {
  /** Canonical. */
  readonly target: string
  readonly content: string
  /** The text that is there; undefined: there is no file. */
  readonly before: string | undefined
}

/**
 * Does an answered request cover a write: it named the file, and where it showed what would change, the write changes just
 * that. An answer for the whole session covers what is written later as well.
 * @param canonical the paths of the action, resolved, in their order
 */
export function coversWrite(
  action: WantedAction,
  canonical: readonly string[],
  isLasting: boolean,
  { target, content, before = '' }: WantedWrite,
): boolean {
  if (!EDITING.has(action.kind) || !canonical.includes(target)) return false
  const shown = action.diffs.filter(({ path }) => canonical[action.paths.indexOf(path)] === target)
  if (isLasting || shown.length === 0) return true
  if (shown.length === 1 && shown[0]!.newText === content) return true
  let text = before
  for (const { oldText = '', newText } of shown) {
    if (oldText === '' || !text.includes(oldText)) return false
    const once = text.replace(oldText, () => newText)
    text = once === content ? once : text.replaceAll(oldText, () => newText)
  }
  return text === content
}

/** What "always" is remembered for: the same kind of call with the same command or paths, else the same title. */
export function subjectOf({ kind, title, command, paths }: WantedAction): string {
  if (command !== undefined) return `${kind}\n${command}`
  return paths.length > 0 ? `${kind}\n${[...paths].sort().join('\n')}` : `${kind}\n${title}`
}

/** Some agents ask before they tell the input of a call, and have written it as the text of its content by then. */
function writtenCommand(call: Partial<ToolCallFields> | undefined): readonly string[] | undefined {
  for (const { type, content } of call?.content ?? []) {
    const { text } = (type === 'content' ? Object(content) : {}) as { readonly text?: unknown }
    if (typeof text !== 'string' || !text.startsWith('{')) continue
    try {
      return commandOf(JSON.parse(text))
    } catch {
      // Words for people.
    }
  }
  return undefined
}

/** Command and arguments, from the forms that agents write them in. */
function commandOf(rawInput: unknown): readonly string[] | undefined {
  if (typeof rawInput !== 'object' || rawInput === null) return undefined
  const { command, cmd, args } = rawInput as Record<string, unknown>
  const first = command ?? cmd
  const rest = Array.isArray(args) ? args.filter(isText) : []
  if (isText(first)) return [first, ...rest]
  if (Array.isArray(first) && first.length > 0 && first.every(isText)) return [...first, ...rest]
  return undefined
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}
