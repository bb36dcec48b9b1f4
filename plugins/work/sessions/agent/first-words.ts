import type { EventContent } from '../events.js'
import type { SessionLog } from '../journal/session-log.js'
import { summarize } from '../read/transcript.js'
import type { SessionRow } from '../table.js'
import type { RunningAgent } from './launch.js'

const SUMMARY_CHARACTERS = 16_000

/** Reason for which a new process does not know the conversation; undefined for the first process of a session. */
export interface Again {
  /** The provider of the previous process, and the one of this process. */
  readonly before: string
  readonly provider: string
  /** The session ID that the agent was asked to load. */
  readonly load: string | undefined
}

/** The transcript marker for a restart. */
export function againMarker(
  { before, provider, load }: Again,
  { session }: RunningAgent['agent'],
): EventContent | undefined {
  if (provider !== before) return { marker: 'provider_changed', from: before, to: provider }
  return load === undefined
    ? undefined
    : { marker: 'session_restarted', loaded: session.loaded, reason: session.loadFailure }
}

/** The texts before the first prompt: the start-up instructions, and a summary of the conversation so far. */
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
