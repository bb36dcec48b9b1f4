import { clip } from '../../../../kernel/kit/text.js'
import type { QuestionDiff, QuestionHidden } from '../../../../schemas/sessions.js'
import type { EventContent } from '../events.js'
import type { FileDiff } from '../questions/file-diff.js'
import { boundedDiffs } from '../questions/shown.js'
import type { PermissionOption, WantedAction } from './permission-rules.js'

const MAX_OPTIONS = 20
const MAX_TEXT = 4096
/** Characters of a command, which may bring a whole file along. */
const MAX_COMMAND = 64 * 1024

/** All that a person may want to know before answering. */
export interface WholeQuestion {
  readonly title: string
  readonly kind: string
  readonly command: string | undefined
  readonly paths: readonly string[]
  /** Those of the paths that lie outside of the workspace. */
  readonly outside: readonly string[]
  readonly diffs: readonly FileDiff[]
}

/** A question in whole, without the diffs. */
export function wholeOf(action: WantedAction, outside: readonly string[] = []): WholeQuestion {
  const { title, kind, paths } = action
  return { title, kind, command: action.shown ?? action.command ?? action.written, paths, outside, diffs: [] }
}

/** A question as the journal has it: each part bounded, with how much is left out. */
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

/** A question whose parts are bounded; `hidden` is there where something is left out. */
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

/** At most `max` characters; what is cut ends with an ellipsis. */
export function bounded(text: string, max = MAX_TEXT): string {
  return text.length > max ? `${clip(text, max)}…` : text
}
