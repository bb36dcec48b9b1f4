import { command, placeholder } from '../../../kernel/kit/commands/command-line.js'
import { defineErrors } from '../../../kernel/plugin.js'

export const SessionErrors = defineErrors({
  hook_denied: { status: 403, message: 'a hook refused this', next: command('hooks list') },
  sandbox_unavailable: {
    status: 422,
    message: 'this session must run in a sandbox, but none can be started here',
    next: command('doctor', '--only', 'sandboxes'),
  },
  agent_unguarded: {
    status: 422,
    message: 'a required hook must approve each operation, but this agent never asks',
    next: command('hooks list', '--event', 'permission.request'),
  },
  session_not_found: { status: 404, message: 'no such session', next: command('session list') },
  session_attached: {
    status: 409,
    message: 'another client is attached to this session',
    next: command('session events', placeholder('id'), '--follow'),
  },
  session_not_attachable: {
    status: 409,
    message: 'only an active session can be attached to',
    next: command('session status', placeholder('id')),
  },
  attach_invalid: {
    status: 400,
    message: 'the attach request is not valid',
    next: 'give ttl_seconds of 1 to 86400, and attached_to of at most 200 characters',
  },
  agent_mode_invalid: {
    status: 409,
    message: 'the agent cannot be given this mode',
    next: command('session attach', placeholder('id')),
  },
  presence_lost: {
    status: 409,
    message: 'this presence has ended; report it again without lease_id',
  },
  presence_full: { status: 409, message: 'too many viewers are present already; try again in a minute' },
  session_not_stopped: {
    status: 409,
    message: 'only a stopped session can be archived',
    next: command('session stop', placeholder('id')),
  },
  session_archived: {
    status: 409,
    message: 'this session is in the archive',
    next: command('session unarchive', placeholder('id')),
  },
  session_stopped: {
    status: 409,
    message: 'this session is stopped; start another one',
    next: command('session new'),
  },
  session_busy: {
    status: 409,
    message: 'a prompt is running in this session',
    next: command('session wait', placeholder('id')),
  },
  session_limit: {
    status: 409,
    message: 'limits.max_concurrent_agents is reached',
    next: 'stop a session with svc session stop <id>, or raise limits.max_concurrent_agents in config.json',
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
    next: command('session health', placeholder('id')),
  },
  session_briefing_failed: {
    status: 500,
    message: 'the context for the agent of this session could not be read',
    next: command('doctor'),
  },
  session_journal_damaged: {
    status: 500,
    message: 'the journal of this session is damaged and can only be read',
    next: command('doctor', '--only', 'sessions'),
  },
  session_prompts_damaged: {
    status: 503,
    message: 'the finished prompts of this session cannot be read, so a repeated prompt could not be detected',
    next: 'restore this file from a backup while no daemon runs, or send the prompt without a key and a message id',
  },
  session_archive_off: {
    status: 503,
    message: 'this session is in the archive, and the plugin archives does not run',
    next: command('plugin show', 'archives'),
  },
  runtime_invalid: {
    status: 400,
    message: 'the agent of this session cannot run with these settings',
    next: command('session runtime', placeholder('id')),
  },
  model_hidden: {
    status: 422,
    message: 'the operator hid this model',
    next: command('provider models list'),
  },
  runtime_changed: {
    status: 409,
    message: 'the runtime of this session has changed meanwhile',
    next: command('session runtime', placeholder('id')),
  },
  transcript_changed: {
    status: 409,
    message: 'the transcript of this session has changed',
    next: command('session transcript', placeholder('id')),
  },
  message_not_found: {
    status: 404,
    message: 'no such prompt in this conversation',
    next: command('session transcript', placeholder('id')),
  },
  rewind_conflict: {
    status: 409,
    message: 'this key was used for another rewind',
    next: 'rewind with a key of its own',
  },
  attachment_not_found: { status: 404, message: 'no such attachment in this session' },
  attachment_invalid: {
    status: 400,
    message: 'this is not a form with one file',
    next: 'send multipart/form-data with one part that has a file name',
  },
  attachment_too_large: { status: 413, message: 'this attachment exceeds the limits of the session' },
  attachment_type: {
    status: 415,
    message: 'a prompt cannot carry such a file',
    next: 'attach a text in UTF-8, a PNG, JPEG, GIF or WebP image, a PDF, or audio',
  },
  turn_changed: {
    status: 409,
    message: 'another turn is now running',
    next: command('session input list', placeholder('id')),
  },
  fork_unconfirmed: {
    status: 400,
    message: 'a fork makes a worktree, a branch and a workspace; confirm it',
    next: 'send it with "confirmed": true',
  },
  provider_fixed: {
    status: 400,
    message: 'the provider of this session cannot be changed',
    next: 'set provider in the AGENT.md of the agent, and leave out its command',
  },
  participation_unavailable: {
    status: 503,
    message: 'sessions cannot take part in the network: the network plugin is absent',
    next: 'leave network_participation out',
  },
  participation_invalid: {
    status: 400,
    message: 'this network participation is not possible',
    next: command('config get', 'network.live.limits'),
  },
  participation_denied: {
    status: 403,
    message: 'a hook denied the network participation',
    next: command('hooks list'),
  },
  prompt_text_missing: {
    status: 400,
    message: 'the text of the prompt is missing',
    next: command('session prompt', placeholder('id'), placeholder('text')),
  },
  prompt_idempotency_conflict: {
    status: 409,
    message: 'this key or message id was used for another prompt',
    next: 'send this prompt with a new key and message id',
  },
  prompt_not_queued: {
    status: 404,
    message: 'no such prompt waits in this session; it may run already',
    next: command('session input list', placeholder('id')),
  },
  no_active_prompt: {
    status: 409,
    message: 'no prompt is running in this session: there is nothing to steer',
    next: command('session prompt', placeholder('id'), placeholder('text')),
  },
  wait_invalid: { status: 400, message: 'the wait request is not valid', next: 'correct what the message names' },
  wait_target_unknown: {
    status: 422,
    message: 'until contains an unknown state',
    next: 'until takes states with commas: idle, prompting, active, stopped',
  },
  wait_outdated: {
    status: 409,
    message: 'the transcript of this session was replaced',
    next: 'read its transcript again, then wait with the epoch in it',
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
  goal_not_active: {
    status: 404,
    message: 'this session has no goal',
    next: "svc session prompt <id> '/goal <goal>'",
  },
  goal_replace_required: {
    status: 409,
    message: 'this session has a goal already',
    next: "svc session prompt <id> '/goal replace <goal>'",
  },
  goal_objective_required: {
    status: 422,
    message: 'the text of the goal is missing',
    next: "svc session prompt <id> '/goal <goal>'",
  },
  goal_objective_too_large: {
    status: 422,
    message: 'the goal is too long',
    next: 'write it into a file of the workspace, and name the file in the goal',
  },
  workspace_choice: {
    status: 400,
    message: 'a session needs exactly one workspace',
    next: 'give either workspace (id or name) or workspace_path (absolute)',
  },
})
