import { parseJson } from '../../../kernel/kit/text.js'
import type { HookEvent } from '../../../schemas/hooks.js'
import type { HookPayload } from './api.js'
import { globTest } from './glob.js'
import { hookEvents } from './hook-events.js'

/** Keys of `metadata` with the original matcher and project of a Claude Code hook. */
export const CLAUDE_MATCHER = 'claude_matcher'
export const CLAUDE_PROJECT = 'claude_project'

/** Claude Code event names by svc event. */
const EVENTS: { readonly [E in HookEvent]?: string } = {
  'permission.request': 'PreToolUse',
  'tool.pre_call': 'PreToolUse',
  'tool.post_call': 'PostToolUse',
  'tool.post_error': 'PostToolUseFailure',
  'input.pre_submit': 'UserPromptSubmit',
  'session.post_create': 'SessionStart',
  'session.post_resume': 'SessionStart',
  'session.post_stop': 'SessionEnd',
  'turn.end': 'Stop',
}

/** Claude Code tool names by kind of operation; the first one is the default. */
const TOOLS: Readonly<Record<string, readonly string[]>> = {
  execute: ['Bash'],
  edit: ['Edit', 'Write', 'MultiEdit', 'NotebookEdit'],
  delete: ['Bash'],
  move: ['Bash'],
  read: ['Read'],
  search: ['Grep', 'Glob', 'LS'],
  fetch: ['WebFetch', 'WebSearch'],
  think: ['Task', 'Agent'],
}

/** Whether programs written for Claude Code can run on this svc event. */
export const isClaudeEvent = (event: HookEvent): boolean => EVENTS[event] !== undefined

/**
 * The globs of a matcher: names joined by `|`, in which `.*` matches anything. Undefined for other regular expressions, which svc
 * does not run.
 */
export function claudeGlobs(matcher: string): readonly string[] | undefined {
  if (matcher === '' || matcher === '*' || matcher === '.*') return []
  const words = matcher
    .replace(/^\^?\((.*)\)\$?$/, '$1')
    .split('|')
    .map(word => word.trim())
  const globs = words.map(word => word.replace(/^\^|\$$/g, '').replaceAll('.*', '*'))
  return globs.every(glob => /^[A-Za-z0-9_*-]+$/.test(glob)) ? globs : undefined
}

/** Compiles the metadata of a hook into a test of its tools and project. */
export function claudeTest(metadata: Readonly<Record<string, string>>): (payload: HookPayload) => boolean {
  const project = metadata[CLAUDE_PROJECT]
  const globs = claudeGlobs(metadata[CLAUDE_MATCHER] ?? '') ?? []
  const tests = globs.map(globTest)
  return payload =>
    (project === undefined || payload.workspace_root === project) &&
    (tests.length === 0 || namesOf(payload).some(name => tests.some(test => test(name))))
}

/** Reason for which a declaration in this format cannot run; undefined when it can. */
export function claudeProblem(event: HookEvent, metadata: Readonly<Record<string, string>> = {}): string | undefined {
  if (!isClaudeEvent(event)) return `format: claude has no event for ${event}`
  if (claudeGlobs(metadata[CLAUDE_MATCHER] ?? '') === undefined)
    return `metadata.${CLAUDE_MATCHER}: names separated by |; .* matches any text`
  return undefined
}

function namesOf({ tool_id: id, tool_name: kind }: HookPayload): readonly string[] {
  const name = String(id ?? kind ?? '')
  return Object.hasOwn(TOOLS, name) ? (TOOLS[name] as readonly string[]) : [name]
}

/** Standard input of a program written for Claude Code. */
export function claudeInput(
  event: HookEvent,
  payload: HookPayload,
  metadata: Readonly<Record<string, string>>,
): object {
  const name = EVENTS[event] ?? event
  return {
    session_id: payload.session_id ?? '',
    // svc has no transcript file in the format of Claude Code.
    transcript_path: '',
    cwd: payload.workspace_root ?? '',
    permission_mode: 'default',
    hook_event_name: name,
    ...membersOf(name, payload, metadata),
  }
}

function membersOf(name: string, payload: HookPayload, metadata: Readonly<Record<string, string>>): object {
  switch (name) {
    case 'PreToolUse':
    case 'PostToolUse':
    case 'PostToolUseFailure':
      return toolMembers(name, payload, metadata)
    case 'UserPromptSubmit':
      return { prompt: payload.message ?? '' }
    case 'SessionStart':
      return { source: payload.event === 'session.post_resume' ? 'resume' : 'startup' }
    case 'SessionEnd':
      return { reason: 'other' }
    default:
      return { stop_hook_active: false }
  }
}

function toolMembers(name: string, payload: HookPayload, metadata: Readonly<Record<string, string>>): object {
  const names = namesOf(payload)
  const tests = (claudeGlobs(metadata[CLAUDE_MATCHER] ?? '') ?? []).map(globTest)
  const tool = names.find(one => tests.some(test => test(one))) ?? names[0]
  const content = objectOf(payload.content)
  return {
    tool_name: tool,
    tool_input: toolInput(payload, content),
    ...(name === 'PostToolUse' && { tool_response: payload.result ?? content }),
    ...(name === 'PostToolUseFailure' && { error: payload.error ?? content.error ?? '' }),
  }
}

/** The input with the member names of Claude Code tools; unchanged for a tool of the daemon. */
function toolInput(payload: HookPayload, content: HookPayload): object {
  const input = objectOf(payload.input ?? content.raw_input ?? content.rawInput)
  if (!Object.hasOwn(TOOLS, String(payload.tool_id ?? payload.tool_name))) return input
  const [path] = Array.isArray(payload.paths) ? payload.paths : [input.path]
  const command = payload.command ?? commandOf(input)
  const title = payload.title ?? content.title
  return {
    ...(command !== undefined && { command }),
    ...(typeof path === 'string' && { file_path: path }),
    ...(title !== undefined && { description: title }),
  }
}

/** A command and its arguments as one line; for a shell call, the script itself. */
function commandOf({ command, args = [] }: HookPayload): string | undefined {
  if (typeof command !== 'string' || !Array.isArray(args)) return undefined
  const [flag, script] = args
  if (/(?:^|\/)(?:ba|da|z)?sh$/.test(command) && /^-l?c$/.test(String(flag)) && args.length === 2) return String(script)
  return [
    command,
    ...args.map(arg => (/^[\w@%+=:,./-]+$/.test(String(arg)) ? arg : `'${String(arg).replaceAll("'", `'\\''`)}'`)),
  ].join(' ')
}

const objectOf = (value: unknown): HookPayload =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as HookPayload) : {}

/**
 * The patch for standard output with exit status 0. Throws for a decision that svc cannot apply, because silently ignoring it would
 * look like success.
 */
export function claudePatch(event: HookEvent, payload: HookPayload, output: string): HookPayload | undefined {
  const members: readonly string[] = hookEvents[event].patch
  const said = jsonOf(output)
  const { hookSpecificOutput, decision, reason, continue: goesOn, stopReason } = objectOf(said)
  const own = objectOf(hookSpecificOutput)
  const verdict = own.permissionDecision ?? objectOf(own.decision).behavior ?? decision
  const denies = verdict === 'deny' || verdict === 'block' || goesOn === false
  if (denies) {
    if (!members.includes('deny')) throw new Error(`the program blocks, but ${event} has happened already`)
    const words = [own.permissionDecisionReason, reason, stopReason].find(
      text => typeof text === 'string' && text !== '',
    )
    return { deny: words ?? true }
  }
  if (own.updatedInput !== undefined) return changedInput(event, objectOf(own.updatedInput))
  const context = own.additionalContext ?? (said === undefined ? output.trim() : undefined)
  if (typeof context !== 'string' || context === '' || !members.includes('context_blocks')) return undefined
  const before = Array.isArray(payload.context_blocks) ? payload.context_blocks : []
  return { context_blocks: [...before, context] }
}

function changedInput(event: HookEvent, { command }: HookPayload): HookPayload {
  if (event !== 'tool.pre_call' || typeof command !== 'string')
    throw new Error(
      `the program changes the input (updatedInput), which is only possible for a command of tool.pre_call`,
    )
  return { input: { command: 'sh', args: ['-c', command] } }
}

/** The output of a program if it is JSON; other text is no decision. */
function jsonOf(output: string): unknown {
  if (!output.trimStart().startsWith('{')) return undefined
  try {
    return parseJson(output)
  } catch {
    return undefined
  }
}
