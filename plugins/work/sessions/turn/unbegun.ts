import type { SessionLog } from '../journal/session-log.js'
import { promptEvent } from './prompts.js'

/** Records a prompt whose turn could not begin, with the reason; resolves when that is durable. */
export async function writeUnbegun(
  log: Pick<SessionLog, 'append' | 'sync'>,
  request: Parameters<typeof promptEvent>[0],
  summary: string,
): Promise<void> {
  const failure = { kind: 'prompt_failure' as const, summary }
  log.append(promptEvent(request))
  log.append(
    { type: 'error', turnId: request.turn_id, content: { error: summary, prompt_sent: false }, failure },
    { sync: true },
  )
  await log.sync()
}
