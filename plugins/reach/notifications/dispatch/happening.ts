import { cut, UNSEEN } from '../../../../kernel/kit/text.js'
import type { StoredEvent } from '../../../platform/events/api.js'
import { JobKind, TriggerKind } from '../../../work/automation/api.js'
import type { K } from '../needs.js'
import type { FilterFacts, Severity } from '../presets/filter.js'
import { type Known, MEANINGS, type Payload } from './events.js'

/** Maximum characters of the parts of a text. */
const TITLE = 200
const DETAIL = 500
const NAME = 80

/** An event with the facts for people and filters. */
export interface Happening {
  readonly seq: number
  readonly id: string
  readonly at: number
  readonly type: string
  readonly severity: Severity
  readonly outcome: 'failure' | 'success' | undefined
  /** Id of its subject: the rules of a preset apply per subject. */
  readonly subject: string
  readonly sessionId?: string | undefined
  readonly taskId?: string | undefined
  readonly runId?: string | undefined
  readonly workspaceId?: string | undefined
  readonly agentName?: string | undefined
  readonly facts: FilterFacts
  readonly title: string
  readonly detail?: string | undefined
  /** Command to run next. */
  readonly command?: string | undefined
  /** Source of an undelivered message. */
  readonly source?: string | undefined
  /** Attention item of a question, which disappears when it is answered. */
  readonly item?: string | undefined
}

const textIn = (payload: Payload, ...names: readonly string[]): string | undefined => {
  for (const name of names) {
    const value = payload[name]
    if (typeof value === 'string' && value !== '') return value
  }
  return undefined
}

/** Payload members with the id of the subject, by event family. */
const SUBJECTS: Readonly<Record<string, readonly string[]>> = {
  task: ['task_id'],
  session: ['id'],
  provider: ['provider'],
  automation: ['job_id', 'trigger_id'],
  bridge: ['bridge_id'],
  agent: ['session_id'],
  attention: ['session_id', 'task_id', 'item_id'],
  plugin: ['name'],
  extension: ['name'],
  tool: ['approval_id', 'session_id'],
}

const payloadOf = ({ payload }: StoredEvent) => (payload ?? {}) as Payload
const familyOf = ({ name }: StoredEvent) => name.split('.', 1)[0] as string

/** Id of the subject of an event. */
/** The id of the thing that the event concerns; without one, the name of the event. */
export const subjectOf = (event: StoredEvent): string =>
  textIn(payloadOf(event), ...(SUBJECTS[familyOf(event)] ?? [])) ?? event.subject ?? event.name

/** Outcome of an event for its subject. */
/** Success or failure, for events that have an outcome. */
export function outcomeOf(event: StoredEvent): Happening['outcome'] {
  const { outcome } = MEANINGS[event.name] ?? {}
  return typeof outcome === 'function' ? outcome(payloadOf(event)) : outcome
}

/** The text and facts of an event, with the current names of its subjects. */
export function happeningOf(kernel: K, event: StoredEvent): Happening {
  const payload = payloadOf(event)
  const { needs, redact } = kernel
  const family = familyOf(event)
  const subject = subjectOf(event)
  const taskId = textIn(payload, 'task_id')
  const runId = textIn(payload, 'run_id')
  const run = runId === undefined ? undefined : needs.tasks.current?.run(runId)
  const sessionId = family === 'session' ? textIn(payload, 'id') : (textIn(payload, 'session_id') ?? run?.session_id)
  const session = sessionId === undefined ? undefined : needs.sessions.current?.get(sessionId)
  const workspaceId = event.scope ?? textIn(payload, 'workspace_id') ?? session?.workspaceId
  const workspace = workspaceId === undefined ? undefined : needs.workspaces.current?.get(workspaceId)
  const agent = textIn(payload, 'agent_name', 'agent') ?? session?.agentName
  const provider = family === 'provider' ? subject : (textIn(payload, 'provider') ?? session?.provider)

  const meaning = MEANINGS[event.name]
  const clean = (text: unknown, most: number) => redact.text(oneLine(`${text}`, most))
  const known: Known = {
    payload,
    id: subject,
    subject: named(clean(nameOf(kernel, family, subject, payload) ?? '', NAME), subject),
    run: runId,
    task: taskId,
    session: sessionId,
  }
  const { severity = 'info' } = meaning ?? {}
  const why = meaning?.why?.(payload)
  const level = typeof severity === 'function' ? severity(payload) : severity
  return {
    ...{ seq: event.seq, id: event.id, at: event.at, type: event.name },
    severity: level,
    outcome: outcomeOf(event),
    ...{ subject, sessionId, taskId, runId, workspaceId, agentName: agent },
    facts: {
      severity: level,
      workspace: workspace ? [workspace.id, workspace.name] : workspaceId,
      agent,
      event_type: event.name,
      provider,
      task: taskId,
      run: runId ?? (family === 'automation' ? textIn(payload, 'id') : undefined),
    },
    title: clean(meaning ? meaning.title(known) : `${event.name}: ${known.subject}`, TITLE),
    detail: why === undefined || why === null || why === '' ? undefined : clean(why, DETAIL),
    command: meaning?.next?.(known),
    source: textIn(payload, 'source'),
    item: textIn(payload, 'item_id'),
  }
}

/** A single-line text without invisible characters. */
export const oneLine = (text: string, most: number): string =>
  cut(text.replace(/\s+/g, ' ').replaceAll(new RegExp(UNSEEN.source, 'gu'), '').trim(), most)

const named = (name: string, id: string) => (name === '' || name === id ? id : `${name} (${id})`)

/** Display name of a subject. */
function nameOf({ needs, records }: K, family: string, id: string, payload: Payload): string | undefined {
  if (family === 'task') return needs.tasks.current?.titleOf(id) ?? textIn(payload, 'title')
  if (family === 'session' || family === 'agent') {
    const session = needs.sessions.current?.get(id)
    return session && (session.name || session.agentName)
  }
  if (family === 'bridge') return needs.bridges.current?.get(id)?.displayName
  if (family !== 'automation') return undefined
  const kind = typeof payload.job_id === 'string' ? JobKind.name : TriggerKind.name
  const spec = records.get(kind, id)?.spec as { readonly name?: unknown } | undefined
  return typeof spec?.name === 'string' ? spec.name : undefined
}

/** The message for a room. */
export function messageOf({ title, detail, command }: Pick<Happening, 'title' | 'detail' | 'command'>): string {
  const why = detail === undefined ? '' : `\n${detail}`
  return `${title}${why}${command === undefined ? '' : `\n\`${command}\``}`
}
