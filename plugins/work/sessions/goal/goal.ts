import * as v from 'valibot'
import { GoalReason, GoalRunStatus, GoalStatus, GoalVerdict } from '../../../../schemas/sessions.js'
import { SessionErrors } from '../api.js'

/** Source of the turns that pursue a goal. */
export const GOAL = 'goal'

/** Maximum characters of an objective. */
export const MAX_OBJECTIVE = 8000

/** The goal of a session, as stored in its row. */
export const Goal = v.object({
  /** `goal_` and 16 hex. */
  run_id: v.string(),
  objective: v.string(),
  status: GoalStatus,
  run_status: GoalRunStatus,
  cause: v.nullable(GoalReason),
  last_verdict: v.nullable(GoalVerdict),
  turn_limit: v.number(),
  turns_used: v.number(),
})
export type Goal = Readonly<v.InferOutput<typeof Goal>>

/** The goal of a row; undefined for none. */
export const goalOf = ({ goal }: { readonly goal: string | null }): Goal | undefined =>
  goal === null ? undefined : v.parse(Goal, JSON.parse(goal))

/** Allowed transitions of the goal status. A complete goal can only be replaced. */
const NEXT: Readonly<Record<GoalStatus, readonly GoalStatus[]>> = {
  active: ['active', 'paused', 'blocked', 'usage-limited', 'budget-limited', 'complete'],
  paused: ['active'],
  blocked: ['active'],
  'usage-limited': ['active'],
  'budget-limited': ['active'],
  complete: [],
}

/** Whether a goal may change from one status to another. */
export const mayBecome = (from: GoalStatus, to: GoalStatus): boolean => NEXT[from].includes(to)

/** A command about the goal of a session. */
export type GoalCommand =
  | { readonly kind: 'start' | 'replace'; readonly objective: string }
  | { readonly kind: 'status' | 'pause' | 'resume' | 'clear' }

const WORDS = ['status', 'pause', 'resume', 'clear'] as const

/**
 * Parses a goal command: `/goal <objective>`, `/goal replace <objective>`, `/goal`, `/goal status`, `pause`, `resume` or `clear`.
 * Undefined for any other prompt.
 * @throws Fault `goal_objective_required`, `goal_objective_too_large` (422)
 */
export function goalCommand(text: string): GoalCommand | undefined {
  const [isGoal, said = ''] = /^\s*\/goal(?:\s+([\s\S]*))?$/.exec(text) ?? []
  if (isGoal === undefined) return undefined
  const instruction = said.trim()
  if (instruction === '') return { kind: 'status' }
  const word = WORDS.find(one => one === instruction)
  if (word) return { kind: word }
  const [, replacing] = /^replace(?:\s+([\s\S]*))?$/.exec(instruction) ?? []
  const isReplacement = /^replace(?:\s|$)/.test(instruction)
  const objective = isReplacement ? (replacing ?? '') : instruction
  if (objective === '') throw SessionErrors.goal_objective_required()
  if (objective.length > MAX_OBJECTIVE) {
    throw SessionErrors.goal_objective_too_large(
      `it has ${objective.length} characters, at most ${MAX_OBJECTIVE} are allowed`,
    )
  }
  return { kind: isReplacement ? 'replace' : 'start', objective }
}

/** The prompt of one turn towards a goal: `turn` of `turn_limit`, the first one is 1. */
export function goalPrompt({ objective, turn_limit }: Goal, turn: number): string {
  const begin =
    turn === 1 ? 'Work towards the goal below.' : 'You did not say that the goal below is reached: go on working.'
  return [
    `${begin} This is turn ${turn} of at most ${turn_limit}.`,
    'When everything that it asks for is done, and you have checked that, end your answer with the line',
    '  GOAL: reached',
    'When you cannot go on without a person, end it with one line that says what is missing:',
    '  GOAL: blocked, and then why',
    'Without such a line you are asked to go on. The goal:',
    '',
    objective,
  ].join('\n')
}

/** The agent's report about its goal in the last line of an answer; undefined without one. */
export function reportIn(answer: string): { readonly says: 'reached' | 'blocked'; readonly note: string } | undefined {
  const last = answer.trimEnd().split('\n').at(-1) ?? ''
  const [, word, note = ''] = /^[\s*_`>]*GOAL:\s*[*_`]*(reached|blocked)\b[\s,.:;*_`\u2013-]*(.*)$/i.exec(last) ?? []
  if (word === undefined) return undefined
  return { says: word.toLowerCase() as 'reached' | 'blocked', note: note.trim() }
}
