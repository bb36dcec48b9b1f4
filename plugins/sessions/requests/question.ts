import type { EventContent } from '../events.js'
import type { PermissionOption, WantedAction, WantedDiff } from './permission-rules.js'

/** Paths, options and diffs of one question that are kept for whoever answers it. */
const MAX_SHOWN = 20
const MAX_TEXT = 4096
const MAX_DIFF_TEXT = 16_384

/** A question as the journal has it: everything that a person needs to answer it, each part bounded. */
export function questionContent(
  requestId: string,
  toolCallId: string | undefined,
  action: WantedAction,
  options: readonly PermissionOption[],
): EventContent {
  const command = action.command ?? action.written
  return {
    request_id: requestId,
    ...(toolCallId !== undefined && { tool_call_id: toolCallId }),
    title: bounded(action.title),
    kind: bounded(action.kind),
    ...(command !== undefined && { command: bounded(command) }),
    paths: action.paths.slice(0, MAX_SHOWN).map(path => bounded(path)),
    ...(action.diffs.length > 0 && { diffs: action.diffs.slice(0, MAX_SHOWN).map(boundedDiff) }),
    options: options.slice(0, MAX_SHOWN).map(({ optionId, name, kind }) => ({ option_id: optionId, name, kind })),
  }
}

/** At most `max` characters; what is cut ends with an ellipsis. */
export function bounded(text: string, max = MAX_TEXT): string {
  return text.length > max ? `${text.slice(0, max)}…` : text
}

function boundedDiff({ path, oldText, newText }: WantedDiff) {
  return {
    path: bounded(path),
    ...(oldText !== undefined && { old_text: bounded(oldText, MAX_DIFF_TEXT) }),
    new_text: bounded(newText, MAX_DIFF_TEXT),
  }
}
