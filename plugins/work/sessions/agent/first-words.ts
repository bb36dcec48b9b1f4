import type { EventContent } from '../events.js'
import type { SessionLog } from '../journal/session-log.js'
import { summarize } from '../read/transcript.js'
import type { SessionRow } from '../table.js'
import type { RunningAgent } from './launch.js'

const SUMMARY_CHARACTERS = 16_000

/** Why a process does not know the conversation that it is to go on with; undefined for the first one of a session. */
export interface Again {
  /** The provider of the process before it, and its own. */
  readonly before: string
  readonly provider: string
  /** The session that it was asked to load. */
  readonly load: string | undefined
}

/** What is told of that in the transcript. */
export function againMarker(
  { before, provider, load }: Again,
  { session }: RunningAgent['agent'],
): EventContent | undefined {
  if (provider !== before) return { marker: 'provider_changed', from: before, to: provider }
  return load === undefined
    ? undefined
    : { marker: 'session_restarted', loaded: session.loaded, reason: session.loadFailure }
}

/** What an agent is told before its first prompt: who it is, and what was said so far. */
export async function firstWords(
  { preamble }: RunningAgent,
  log: SessionLog,
  upTo: number | undefined,
  { before, provider, load }: Again,
  { epoch, forked_from }: SessionRow,
): Promise<string> {
  const isOther = provider !== before
  const isOlder = isOther || load !== undefined || epoch > 0 || forked_from !== null
  const summary = isOlder ? await summarize(log, SUMMARY_CHARACTERS, upTo) : ''
  if (summary === '') return preamble
  const why = isOther
    ? `Until now ${before} worked on this. `
    : load === undefined
      ? ''
      : 'This session was interrupted. '
  return `${preamble}\n\n${why}The conversation so far, shortened:\n\n${summary}`
}
