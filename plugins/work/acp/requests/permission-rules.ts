import { shellWord } from '../../../../kernel/kit/commands/command-line.js'
import type { PermissionMode } from '../../../agents/agents/api.js'
import type { PermissionParams, ToolCallFields } from '../protocol/schemas.js'

/** A person's answers to a permission request. */
export type Decision = 'allow-once' | 'allow-always' | 'reject-once' | 'reject-always'

/** The protocol's answer to a permission request. */
export type PermissionOutcome =
  | { readonly outcome: { readonly outcome: 'cancelled' } }
  | { readonly outcome: { readonly outcome: 'selected'; readonly optionId: string } }

export const CANCELLED: PermissionOutcome = { outcome: { outcome: 'cancelled' } }

export type PermissionOption = NonNullable<PermissionParams['options']>[number]

/** An operation that an agent requests, as far as the tool call describes it. */
export interface WantedAction {
  readonly kind: string
  readonly title: string
  /** For a command: its words joined by blanks, and the separate words where known. */
  readonly command?: string
  readonly argv?: readonly string[]
  /** The command in the content of a call without input. It is not used to check whether a grant covers an operation. */
  readonly written?: string
  /** The command as a person reads it, where that is clearer. */
  readonly shown?: string
  /** Paths as the agent wrote them. */
  readonly paths: readonly string[]
  /** The requested file changes, as far as the tool call shows them. */
  readonly diffs: readonly WantedDiff[]
}

/** A file before and after; without `oldText` it is new. */
export interface WantedDiff {
  readonly path: string
  readonly oldText?: string
  readonly newText: string
}

/** Kinds of tool calls without changes (ACP ToolKind). */
const READING: ReadonlySet<string> = new Set(['read', 'search'])
const EDITING: ReadonlySet<string> = new Set(['edit', 'delete', 'move'])

export const isReading = (kind: string): boolean => READING.has(kind)

/** The decision of a mode about an operation; `ask` leaves it to a person. */
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

/**
 * Whether a mode requires a question before a tool call of this kind. A command may only read, so it is no breach of
 * `approve-reads`.
 */
export function mustAsk(mode: PermissionMode, kind: string): boolean {
  return mode !== 'approve-all' && (EDITING.has(kind) || (mode === 'deny-all' && kind === 'execute'))
}

/**
 * The option for a decision, found by kind: agents choose the order of options and omit some. Undefined when every option would
 * express more than the decision.
 */
export function optionFor(options: readonly PermissionOption[], decision: Decision): PermissionOption | undefined {
  const kinds: Readonly<Record<Decision, readonly string[]>> = {
    'allow-once': ['allow_once'],
    // "Always" is remembered by the daemon too, so the smaller option is enough.
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

/** The option for an automatic approval: a one-time option if offered. */
export function automaticAllow(options: readonly PermissionOption[]): PermissionOption | undefined {
  return options.find(({ kind }) => kind === 'allow_once') ?? options.find(({ kind }) => kind === 'allow_always')
}

/** The option that answers a request; undefined when the request is cancelled, or no option matches the decision. */
export function chooseOption(
  options: readonly PermissionOption[],
  decision: Decision | 'cancelled',
  byMode: boolean,
): PermissionOption | undefined {
  if (decision === 'cancelled') return undefined
  return decision === 'allow-once' && byMode ? automaticAllow(options) : optionFor(options, decision)
}

/** The answer to a request: an option, or `cancelled` without one. */
export function outcomeOf(option: PermissionOption | undefined): PermissionOutcome {
  return option ? { outcome: { outcome: 'selected', optionId: option.optionId } } : CANCELLED
}

/** Derives the operation from a tool call; members that it omits may be known from earlier updates. */
export function wantedAction(call: ToolCallFields | undefined, known: Partial<ToolCallFields> = {}): WantedAction {
  const rawInput = call?.rawInput ?? known.rawInput
  const callKind = call?.kind ?? known.kind
  const written = callKind === 'execute' ? (writtenCommand(call) ?? writtenCommand(known)) : undefined
  const argv = commandOf(rawInput)
  const locations = call?.locations ?? known.locations ?? []
  const diffs = (call?.content ?? known.content ?? []).filter(({ type, path }) => type === 'diff' && isText(path))
  const paths = [...new Set([...locations.map(({ path }) => path), ...diffs.map(({ path }) => path as string)])]
  const namedKind = call?.kind ?? known.kind
  const kind =
    namedKind && namedKind !== 'other'
      ? namedKind
      : argv
        ? 'execute'
        : diffs.length > 0
          ? 'edit'
          : (namedKind ?? 'other')
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
    // A word with blanks is quoted, so that a person sees one word.
    ...(argv &&
      argv.length > 1 &&
      argv.some(word => shellWord(word) !== word) && { shown: argv.map(shellWord).join(' ') }),
    ...(!argv && written && { written: written.join(' ') }),
  }
}

/**
 * Whether an answered request covers this command: the same words, or a shell with them as one argument, optionally after a change
 * to the session's folder. A request without a command covers none.
 * @param root the folder of the session, to which some agents change first
 */
export function coversCommand(action: WantedAction, argv: readonly string[], root?: string): boolean {
  const commandLine = action.command ?? action.written
  if (action.kind !== 'execute' || commandLine === undefined) return false
  if (argv.join(' ') === commandLine) return true
  if (argv.length !== 3 || !/^-[a-z]*c$/.test(argv[1]!)) return false
  const names = root === undefined ? [] : [shellWord(root), `'${root.replaceAll("'", "'\\''")}'`]
  return argv[2] === commandLine || names.some(name => argv[2] === `cd ${name} && ${commandLine}`)
}

/** A file write of the daemon for an agent. */
export interface WantedWrite {
  /** Canonical. */
  readonly target: string
  readonly content: string
  /** The current text; undefined: the file does not exist. */
  readonly before: string | undefined
}

/**
 * Whether an answered request covers a write: it named the file, and if it showed a change, the write makes exactly that change. An
 * answer for the whole session covers later writes too.
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

/** The key of an "always" answer: kind of call with its command or paths, else with its title. */
export function subjectOf({ kind, title, command, paths }: WantedAction): string {
  if (command !== undefined) return `${kind}\n${command}`
  return paths.length > 0 ? `${kind}\n${[...paths].sort().join('\n')}` : `${kind}\n${title}`
}

/** Some agents ask before they send the input of a call; its content then has the command as text. */
function writtenCommand(call: Partial<ToolCallFields> | undefined): readonly string[] | undefined {
  for (const { type, content } of call?.content ?? []) {
    const { text } = (type === 'content' ? Object(content) : {}) as { readonly text?: unknown }
    if (typeof text !== 'string' || !text.startsWith('{')) continue
    try {
      return commandOf(JSON.parse(text))
    } catch {
      // The text is not a command.
    }
  }
  return undefined
}

/** Command and arguments, from any of the forms that agents use. */
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
