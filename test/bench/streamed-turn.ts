import { Readable } from 'node:stream'
import { type Clock, type Ids, type Redact, turn } from '../../kernel/plugin.js'
import type { Journal } from '../../plugins/platform/journals/api.js'
import { readLines } from '../../plugins/platform/processes/output/lines.js'
import { SessionLog } from '../../plugins/work/sessions/journal/session-log.js'
import { ToolCalls } from '../../plugins/work/sessions/turn/tool-calls.js'
import { Updates } from '../../plugins/work/sessions/turn/updates.js'

const WORDS = 'the quick brown fox jumps over the lazy dog and asks itself why it does so every single day '

/**
 * Milliseconds for what an agent prints in a turn: lines are read, parsed, gathered and encoded as events. Disk, sockets and
 * readers are left out, so that what is added to the rest weighs more than in a daemon.
 */
export async function streamedTurn(
  kernel: { readonly clock: Clock; readonly ids: Ids; readonly redact: Redact },
  chunks: number,
): Promise<number> {
  let last = 0
  const journal = {
    generation: 1,
    first: 1,
    get last() {
      return last
    },
    append: (payloads: readonly Uint8Array[]) => payloads.map(() => ++last),
    written: async () => {},
    sync: async () => {},
    close: async () => {},
  } as unknown as Journal
  const log = new SessionLog(journal, kernel.clock, kernel.ids, kernel.redact, error => {
    throw error
  })
  const points = { used: { call: async () => {} } as never }
  const updates = new Updates({ id: 'ses', log }, { kernel, points }, () => undefined)
  const target = { turnId: 't', calls: new ToolCalls(), touched() {}, toolEnded() {} }
  const output = Array.from({ length: chunks }, (_, n) => {
    const text = WORDS.slice(n % 30) + n
    const update = { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } }
    return Buffer.from(
      `${JSON.stringify({ jsonrpc: '2.0', method: 'session/update', params: { sessionId: 's', update } })}\n`,
    )
  })
  await turn()
  const began = performance.now()
  await readLines(Readable.from(output), {
    ...{ owner: 'bench', lineBytes: 2 ** 20, junk: 0 },
    take(line) {
      updates.take(JSON.parse(line).params, target)
      return true
    },
  })
  log.append({ type: 'done', turnId: 't', content: {} })
  const elapsed = performance.now() - began
  // With the last event: chunks that were refused cost nothing.
  if (last < 2) throw new Error(`${last} events of ${chunks} chunks`)
  await log.close()
  return elapsed
}
