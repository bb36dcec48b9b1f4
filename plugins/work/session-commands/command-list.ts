import type { Command } from '../../../kernel/plugin.js'

const session = { name: 'session_id', summary: 'id of a session' }
const permissions = {
  name: 'permissions',
  type: 'text',
  values: ['approve-reads', 'deny-all', 'approve-all'],
  summary: 'permission mode; default: that of the agent',
} as const

const sandbox = {
  name: 'sandbox',
  type: 'text',
  summary: 'sandbox profile: default, a configured profile, or none; default: as configured',
} as const

const request = { name: 'request', type: 'text', summary: 'id of the request, if several are open' } as const

const attach = {
  name: 'attach',
  type: 'list',
  summary: 'file to send with the prompt, at most 20 MiB; may be repeated up to 10 times',
} as const

const openedWorkspace = {
  name: 'workspace',
  type: 'workspace',
  opens: true,
  summary:
    'id, name or path; default: SVC_WORKSPACE, else that of this folder, else its git repository, else the folder',
} as const

/** The session commands that need more than one request. */
export const commandList: readonly Command[] = [
  {
    path: 'run',
    summary: 'Run an agent on a prompt in this folder',
    args: [
      {
        name: 'prompt',
        optional: true,
        summary:
          'text of the prompt; - reads it from standard input; otherwise standard input is appended to the prompt',
      },
    ],
    options: [
      { name: 'print', type: 'boolean', summary: 'print only the answer of the agent; ask no questions' },
      {
        name: 'agent',
        type: 'text',
        summary: 'name of an agent; default: the configured agent, else the first installed provider',
      },
      openedWorkspace,
      { name: 'model', type: 'text', summary: 'model to use instead of that of the agent' },
      attach,
      permissions,
      sandbox,
    ],
    load: () => import('./commands.js').then(module => ({ run: module.runRun })),
  },
  {
    path: 'inbox',
    summary: 'List questions, approvals and tasks that wait for you, or show one and answer it',
    args: [{ name: 'number', optional: true, summary: 'number of the item to show and answer' }],
    options: [{ name: 'watch', type: 'boolean', summary: 'refresh the list until Ctrl-C' }],
    load: () => import('./commands.js').then(module => ({ run: module.runInbox })),
  },
  {
    path: 'session new',
    summary: 'Start a session in the current workspace',
    options: [
      { name: 'agent', type: 'text', summary: 'name of an agent; default: the default agent of the workspace' },
      openedWorkspace,
      { name: 'name', type: 'text', summary: 'name of the session' },
      { name: 'model', type: 'text', summary: 'model to use instead of that of the agent' },
      { name: 'prompt', type: 'text', summary: 'first prompt' },
      attach,
      permissions,
      sandbox,
    ],
    load: () => import('./commands.js').then(module => ({ run: module.runNew })),
  },
  {
    path: 'session events',
    summary: 'Show the events of a session',
    args: [session],
    options: [
      { name: 'follow', type: 'boolean', summary: 'follow new events until the session stops' },
      { name: 'limit', type: 'integer', summary: 'number of newest entries' },
      { name: 'type', type: 'text', summary: 'only events of this type' },
      { name: 'turn', type: 'text', summary: 'only events of this turn' },
    ],
    load: () => import('./commands.js').then(module => ({ run: module.runEvents })),
  },
  {
    path: 'session history',
    summary: 'Show the events of a session by turn',
    args: [session],
    options: [{ name: 'limit', type: 'integer', summary: 'number of newest events' }],
    load: () => import('./commands.js').then(module => ({ run: module.runHistory })),
  },
  {
    path: 'session transcript',
    summary: 'Show the conversation of a session',
    args: [session],
    options: [{ name: 'limit', type: 'integer', summary: 'number of newest messages' }],
    load: () => import('./commands.js').then(module => ({ run: module.runTranscript })),
  },
  {
    path: 'session approve',
    summary: 'Show a permission request of a session with everything that it would run or change, and answer it',
    args: [session],
    options: [
      { name: 'reject', type: 'boolean', summary: 'reject the request' },
      { name: 'always', type: 'boolean', summary: 'remember the answer for the rest of the session' },
      request,
      {
        name: 'yes',
        type: 'boolean',
        summary: 'allow the shown request without confirmation; required without a terminal',
      },
    ],
    load: () => import('./commands.js').then(module => ({ run: module.runApprove })),
  },
  {
    path: 'session deny',
    summary: 'Reject a permission request of a session',
    args: [session],
    options: [{ name: 'always', type: 'boolean', summary: 'remember the answer for the rest of the session' }, request],
    load: () => import('./commands.js').then(module => ({ run: module.runApprove })),
  },
  {
    path: 'session interactions',
    summary: 'List the questions of an agent, or show one in full, with what it would run and change',
    args: [session, { name: 'interaction_id', optional: true, summary: 'id of a question' }],
    options: [
      {
        name: 'status',
        type: 'text',
        values: ['pending', 'orphaned', 'resolved', 'timed_out', 'canceled'],
        summary: 'only questions with this status',
      },
    ],
    load: () => import('./commands.js').then(module => ({ run: module.runInteractions })),
  },
  {
    path: 'session prompt',
    summary: 'Send a prompt and show the answer; answer questions at the terminal',
    args: [session, { name: 'text', optional: true, summary: 'text of the prompt; - reads standard input' }],
    options: [
      { name: 'no-wait', type: 'boolean', summary: 'return without waiting for the answer' },
      { name: 'mode', type: 'text', summary: 'what to do while a turn runs: queue (default), interrupt or steer' },
      attach,
      { name: 'idempotency-key', type: 'text', summary: 'idempotency key; the same prompt is sent only once' },
      { name: 'message-id', type: 'text', summary: 'id of the message; generated if omitted' },
    ],
    load: () => import('./commands.js').then(module => ({ run: module.runPrompt })),
  },
  {
    path: 'session attach',
    summary: 'Attach to a session: follow it, answer questions and send prompts',
    args: [session],
    options: [
      {
        name: 'take-over',
        type: 'boolean',
        summary: 'attach even if another terminal is attached, and detach that one',
      },
    ],
    load: () => import('./commands.js').then(module => ({ run: module.runAttach })),
  },
  {
    path: 'session wait',
    summary: 'Wait until a session has no running turn',
    args: [session],
    options: [
      {
        name: 'until',
        type: 'text',
        summary: 'states to wait for, comma-separated: idle, prompting, active, stopped, …',
      },
      { name: 'timeout', type: 'integer', summary: 'timeout in seconds; default: none' },
    ],
    load: () => import('./commands.js').then(module => ({ run: module.runWait })),
  },
  {
    path: 'session resume',
    summary: 'Resume a session interrupted by a crash or a stop of the daemon',
    args: [session],
    load: () => import('./commands.js').then(module => ({ run: module.runResume })),
  },
  {
    path: 'session recap',
    summary: 'Show a recap of a session: last messages and open questions',
    args: [session],
    options: [{ name: 'limit', type: 'integer', summary: 'number of newest messages' }],
    load: () => import('./commands.js').then(module => ({ run: module.runRecap })),
  },
  {
    path: 'session clarify',
    summary: 'Show the questions of an agent, or answer one',
    args: [session, { name: 'answer', optional: true, summary: 'number of a choice, numbers with commas, or text' }],
    options: [
      { name: 'request', type: 'text', summary: 'id of the question, if several are open' },
      { name: 'skip', type: 'boolean', summary: 'leave an optional question without an answer' },
      { name: 'decline', type: 'boolean', summary: 'decline this question and the rest of its form' },
    ],
    load: () => import('./commands.js').then(module => ({ run: module.runClarify })),
  },
  {
    path: 'session runtime',
    summary: 'Show or set the provider, model, effort and speed of a session',
    args: [session],
    options: [
      { name: 'provider', type: 'text', summary: 'provider to run the agent with' },
      { name: 'model', type: 'text', summary: 'model that the agent offers' },
      {
        name: 'effort',
        type: 'text',
        values: ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'],
        summary: 'reasoning effort of the model',
      },
      { name: 'speed', type: 'text', values: ['normal', 'fast'], summary: 'speed of the model' },
      { name: 'reset', type: 'boolean', summary: 'restore the values that the session started with' },
    ],
    load: () => import('./commands.js').then(module => ({ run: module.runRuntime })),
  },
  {
    path: 'session rewind',
    summary: 'Rewind a conversation to before its last prompt; changed files are kept and listed',
    args: [session],
    options: [{ name: 'message', type: 'text', summary: 'id of an earlier prompt to rewind to' }],
    load: () => import('./commands.js').then(module => ({ run: module.runRewind })),
  },
  {
    path: 'session fork',
    summary: 'Fork a conversation into a new session in its own git worktree',
    args: [session],
    options: [
      { name: 'name', type: 'text', summary: 'name of the new worktree and its branch svc/<name>' },
      { name: 'worktree', type: 'text', summary: 'existing worktree to use, by name or path' },
    ],
    load: () => import('./commands.js').then(module => ({ run: module.runFork })),
  },
]
