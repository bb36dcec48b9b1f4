import * as v from 'valibot'
import { duration, flag, integer, type Members, own, words } from '../keys.js'

const line = v.pipe(v.string(), v.maxLength(256))
const Fallbacks = v.pipe(
  v.array(v.strictObject({ model: line, provider: line, reasoning_effort: line })),
  v.maxLength(16),
)

/** What each role has; `what` says what the role does. */
const model = (what: string): Members => ({
  enabled: flag(true, `Whether ${what}`),
  provider: words('', `Provider of the model; empty: the default provider`),
  model: words('', 'Model; empty: the default model of the provider'),
  reasoning_effort: words('', 'Reasoning effort; empty: the default of the model'),
  fallback_chain: own(Fallbacks, [], 'Models that are tried in order when the first one fails'),
})
const agent = (what: string): Members => ({ ...model(what), agent: words('', 'Agent; empty: the built-in one') })

/** Work that the daemon gives to models by itself. */
export const roles: Members = {
  auto_title: agent('sessions are given a title'),
  checkpoint_summary: agent('checkpoints are summarised'),
  coordinator: {
    ...agent('a coordinator distributes tasks'),
    max_active_sessions_per_workspace: integer(3, 'Sessions of the coordinator in one workspace', 1000),
    max_children: integer(5, 'Sessions that one coordinator may start', 1000),
    ttl: duration('2h', 'Longest life of a coordinator'),
  },
  dream: agent('memories are consolidated'),
  memory_controller: {
    ...model('writes of memories are judged'),
    max_tokens_out: integer(512, 'Tokens of one judgement', 1_000_000),
    prompt_version: words('v1', 'Version of the prompt'),
    timeout: duration('5s', 'Time that a judgement may take'),
    top_k: integer(5, 'Memories that a judgement sees', 1000),
  },
  memory_extractor: agent('memories are extracted from turns'),
}
