import * as v from 'valibot'
import { duration, durationKey, flag, integer, key, type Members, own, words } from '../keys.js'

const line = v.pipe(v.string(), v.maxLength(256))
const Fallbacks = v.pipe(
  v.array(v.strictObject({ model: line, provider: line, reasoning_effort: line })),
  v.maxLength(16),
)

/** Members of each role; `what` describes the role. */
const model = (what: string): Members => ({
  enabled: flag(true, `Whether ${what}`),
  provider: words('', `Provider of the model; empty: the default provider`),
  model: words('', 'Model; empty: the default model of the provider'),
  reasoning_effort: words('', 'Reasoning effort; empty: the default of the model'),
  fallback_chain: own(Fallbacks, [], 'Models that are tried in order when the first one fails'),
})
const agent = (what: string): Members => ({ ...model(what), agent: words('', 'Agent; empty: the built-in one') })

/** Work that the daemon delegates to models on its own. */
export const roles: Members = {
  auto_title: agent('sessions are given a title'),
  checkpoint_summary: agent('checkpoints are summarised'),
  coordinator: {
    ...agent('a coordinator distributes tasks'),
    // Keys that the plugin `tasks` reads and owns.
    enabled: key('roles.coordinator.enabled', v.boolean()),
    agent: key('roles.coordinator.agent', v.string()),
    provider: key('roles.coordinator.provider', v.string()),
    model: key('roles.coordinator.model', v.string()),
    max_active_sessions_per_workspace: key('roles.coordinator.max_active_sessions_per_workspace', v.number()),
    max_children: key('roles.coordinator.max_children', v.number()),
    ttl: durationKey('roles.coordinator.ttl'),
  },
  dream: agent('memories are consolidated'),
  memory_controller: {
    ...model('writes of memories are judged'),
    max_tokens_out: integer(512, 'Tokens of one judgement', 1_000_000),
    prompt_version: words('v1', 'Version of the prompt'),
    timeout: duration('5s', 'Timeout of a judgement'),
    top_k: integer(5, 'Memories that a judgement sees', 1000),
  },
  memory_extractor: agent('memories are extracted from turns'),
}
