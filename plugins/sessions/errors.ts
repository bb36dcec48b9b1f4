import { defineErrors } from '../../kernel/plugin.js'

export const SessionErrors = defineErrors({
  session_not_found: { status: 404, message: 'no such session', next: 'svc session list' },
  session_stopped: {
    status: 409,
    message: 'this session is stopped; start another one',
    next: 'svc session new',
  },
  session_busy: {
    status: 409,
    message: 'a prompt is running in this session',
    next: 'svc session wait <id>',
  },
  session_limit: {
    status: 409,
    message: 'limits.max_concurrent_agents is reached',
    next: 'stop a session with svc session stop <id>, or raise limits.max_concurrent_agents in config.json',
  },
  permission_not_found: {
    status: 404,
    message: 'no such pending permission request; it may be answered already',
    next: 'svc session interactions <id>',
  },
  session_name_invalid: {
    status: 400,
    message: 'this cannot be the name of a session',
    next: 'a name is 1 to 200 characters without control characters',
  },
  session_cursor_invalid: {
    status: 400,
    message: 'the cursor does not belong to this filter',
    next: 'start again without it',
  },
  session_start_failed: {
    status: 500,
    message: 'the agent process could not be started',
    next: 'svc session health <id>',
  },
  session_briefing_failed: {
    status: 500,
    message: 'what the agent of this session is to be told could not be read',
    next: 'svc doctor',
  },
  session_journal_damaged: {
    status: 500,
    message: 'the journal of this session is damaged and can only be read',
    next: 'svc doctor --only sessions',
  },
  provider_fixed: {
    status: 400,
    message: 'the provider of a session is that of its agent',
    next: 'set provider in the AGENT.md of the agent',
  },
  participation_unavailable: {
    status: 503,
    message: 'sessions cannot take part in the network: that part of the daemon is absent',
    next: 'leave network_participation out',
  },
  prompt_text_missing: { status: 400, message: 'a prompt needs a text', next: "svc session prompt <id> 'text'" },
  permission_not_offered: {
    status: 400,
    message: 'the agent offers no option of that kind for this request',
    next: 'take the decision that its options allow: svc session history <id> shows them',
  },
  prompt_idempotency_conflict: {
    status: 409,
    message: 'this key or message id is bound to another prompt',
    next: 'send this prompt with a key and a message id of its own',
  },
  prompt_not_queued: {
    status: 404,
    message: 'no such prompt waits in this session; it may run already',
    next: 'svc session input list <id>',
  },
  no_active_prompt: {
    status: 409,
    message: 'no prompt is running in this session: there is nothing to steer',
    next: "svc session prompt <id> 'text'",
  },
  wait_invalid: { status: 400, message: 'this cannot be waited for', next: 'correct what the message names' },
  wait_target_unknown: {
    status: 422,
    message: 'until names a state that there is not',
    next: 'until takes states with commas: idle, prompting, active, stopped',
  },
  wait_outdated: {
    status: 409,
    message: 'the transcript of this session was replaced',
    next: 'read its transcript again, then wait with the epoch that it tells',
  },
  wait_gone: {
    status: 410,
    message: 'there is no such wait to go on with',
    next: 'start again without resume_id',
  },
  queue_full: {
    status: 409,
    message: 'the prompt queue of this session is full',
    next: 'take one out with svc session input remove <id> <entry>, or raise session.busy_input.queue_cap',
  },
  workspace_choice: {
    status: 400,
    message: 'a session needs exactly one workspace',
    next: 'give either workspace (id or name) or workspace_path (absolute)',
  },
})
