import { clip } from '../../../../kernel/kit/text.js'
import type { QuestionDiff, QuestionHidden } from '../../../../schemas/sessions.js'
import type { FileDiff } from '../questions/file-diff.js'
import { boundedDiffs } from '../questions/shown.js'
import type { EventContent } from './content.js'
import type { PermissionOption, WantedAction } from './permission-rules.js'

const MAX_OPTIONS = 20
const MAX_TEXT = 4096
/** Characters of a command, which may contain a whole file. */
const MAX_COMMAND = 64 * 1024

/** The details of a question for the person who answers it. */
export interface WholeQuestion {
  readonly title: string
  readonly kind: string
  readonly command: string | undefined
  readonly paths: readonly string[]
  /** The paths outside of the workspace. */
  readonly outside: readonly string[]
  readonly diffs: readonly FileDiff[]
}

/** A question in whole, without the diffs. */
export function wholeOf(action: WantedAction, outside: readonly string[] = []): WholeQuestion {
  const { title, kind, paths } = action
  return { title, kind, command: action.shown ?? action.command ?? action.written, paths, outside, diffs: [] }
}

/** The journal form of a question: each part is bounded, with the size of the omitted rest. */
export function questionContent(
  requestId: string,
  toolCallId: string | undefined,
  question: WholeQuestion,
  options: readonly PermissionOption[],
): EventContent {
  const { title, kind, command, paths, outside, diffs, hidden } = boundedQuestion(question)
  return {
    request_id: requestId,
    ...(toolCallId !== undefined && { tool_call_id: toolCallId }),
    title,
    kind,
    ...(command !== undefined && { command }),
    paths,
    ...(outside.length > 0 && { outside }),
    ...(diffs.length > 0 && { diffs }),
    ...(hidden && { hidden }),
    options: options.slice(0, MAX_OPTIONS).map(({ optionId, name, kind }) => ({ option_id: optionId, name, kind })),
  }
}

/** A question with bounded parts; `hidden` is present when something is omitted. */
export function boundedQuestion(question: WholeQuestion) {
  const { diffs, hidden } = boundedDiffs(question.diffs)
  let characters = hidden.characters
  const cut = (text: string, max: number) => {
    characters += Math.max(0, text.length - max)
    return bounded(text, max)
  }
  const bound = {
    title: cut(question.title, MAX_TEXT),
    kind: bounded(question.kind, 100),
    command: question.command === undefined ? undefined : cut(question.command, MAX_COMMAND),
    paths: question.paths.map(path => cut(path, MAX_TEXT)),
    outside: question.outside.map(path => bounded(path)),
    diffs: diffs as readonly QuestionDiff[],
  }
  const all: QuestionHidden = { ...hidden, characters }
  return { ...bound, hidden: Object.values(all).some(count => count > 0) ? all : undefined }
}

/** At most `max` characters; a cut text ends with an ellipsis. */
export function bounded(text: string, max = MAX_TEXT): string {
  return text.length > max ? `${clip(text, max)}…` : text
}
