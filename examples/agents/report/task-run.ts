import { execFile } from 'node:child_process'
import type { ContentBlock, StopReason } from '@agentclientprotocol/sdk'

/** Longer than a report takes, and short enough for a run to be taken back soon from an agent that died. */
const LEASE_SECONDS = 900
/** Characters of an error that are told. */
const MAX_ERROR = 500

/** The run of a task that a prompt gives to its session; undefined: it gives none. */
export function namedRun(prompt: readonly ContentBlock[]): string | undefined {
  const text = prompt.map(block => (block.type === 'text' ? block.text : '')).join('\n')
  return /^You work on run (trun_[0-9a-f]{16}) of task /m.exec(text)?.[1]
}

/** How a turn ended: what was said at its end, and what was missing. */
export interface Outcome {
  readonly reason: StopReason
  readonly said: string
  readonly failure?: string
}

/**
 * Claims the run, does the work, and ends the run with what came of it. A run that is given to another session is left to it. By the
 * command line of the daemon, whose path is in the environment of every agent: it changes nothing but the run of this session, and so
 * needs no permission.
 */
export async function workOnRun(
  id: string,
  work: () => Promise<Outcome>,
  say: (text: string) => Promise<void>,
): Promise<StopReason> {
  try {
    await svc('next', '--run-id', id, '--lease-seconds', String(LEASE_SECONDS))
    await svc('begin', id)
  } catch (error) {
    await say(`Run ${id} was not given to me: ${error instanceof Error ? error.message : error}`)
    return 'refusal'
  }
  const { reason, said, failure } = await work()
  if (failure === undefined) await svc('complete', id, '--result', JSON.stringify({ summary: said }))
  else await svc('fail', id, '--error', failure.slice(0, MAX_ERROR))
  return reason
}

/** A command about tasks; rejects with what it says when it is refused. */
function svc(...args: readonly string[]): Promise<void> {
  const { SVC_BIN: bin } = process.env
  if (bin === undefined)
    return Promise.reject(new Error('SVC_BIN does not say where the command line of the daemon is'))
  return new Promise((resolve, reject) => {
    execFile(bin, ['task', ...args], (error, _stdout, stderr) => {
      if (error) reject(new Error(stderr.trim().slice(0, MAX_ERROR) || error.message))
      else resolve()
    })
  })
}
