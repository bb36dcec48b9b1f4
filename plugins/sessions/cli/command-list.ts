import type { Command } from '../../../kernel/plugin.js'

const session = { name: 'session_id', summary: 'id of a session' }
const permissions = {
  name: 'permissions',
  type: 'text',
  values: ['approve-reads', 'deny-all', 'approve-all'],
  summary: 'what the agent may do without asking; default: as the agent is defined',
} as const

const sandbox = {
  name: 'sandbox',
  type: 'text',
  summary: 'profile to run in: default, one of the settings, or none; default: as configured',
} as const

const attach = {
  name: 'attach',
  type: 'list',
  summary: 'file to send along, at most 20 MiB; may be given up to 10 times',
} as const

/** The commands of sessions that are more than one request. */
export const commandList: readonly Command[] = [
  {
    path: 'run',
    summary: 'Run an agent on a prompt in this folder, from start to end',
    args: [{ name: 'prompt', optional: true, summary: 'what to ask; - is standard input' }],
    options: [
      {
        name: 'agent',
        type: 'text',
        summary: 'name of an agent; default: the configured one, else what is installed',
      },
      { name: 'workspace', type: 'workspace', summary: 'id, name or path; default: the one around this folder' },
      { name: 'model', type: 'text', summary: 'instead of the model of the agent' },
      attach,
      permissions,
      sandbox,
    ],
    load: () => import('../commands.js').then(module => ({ run: module.runRun })),
  },
  {
    path: 'session new',
    summary: 'Start a session in the current workspace',
    options: [
      { name: 'agent', type: 'text', summary: 'name of an agent; default: that of the workspace' },
      {
        name: 'workspace',
        type: 'workspace',
        summary: 'id, name or path; default: SVC_WORKSPACE, else that of this folder, else this folder',
      },
      { name: 'name', type: 'text', summary: 'what to call the session' },
      { name: 'model', type: 'text', summary: 'instead of the model of the agent' },
      { name: 'prompt', type: 'text', summary: 'what to ask first' },
      attach,
      permissions,
      sandbox,
    ],
    load: () => import('../commands.js').then(module => ({ run: module.runNew })),
  },
  {
    path: 'session events',
    summary: 'Show what happened in a session, line by line',
    args: [session],
    options: [
      { name: 'follow', type: 'boolean', summary: 'go on until the session stops' },
      { name: 'limit', type: 'integer', summary: 'the newest this many' },
      { name: 'type', type: 'text', summary: 'only events of this type' },
      { name: 'turn', type: 'text', summary: 'only events of this turn' },
    ],
    load: () => import('../commands.js').then(module => ({ run: module.runEvents })),
  },
  {
    path: 'session history',
    summary: 'Show what happened in a session, turn by turn',
    args: [session],
    options: [{ name: 'limit', type: 'integer', summary: 'the newest this many events' }],
    load: () => import('../commands.js').then(module => ({ run: module.runHistory })),
  },
  {
    path: 'session transcript',
    summary: 'Show the conversation of a session',
    args: [session],
    options: [{ name: 'limit', type: 'integer', summary: 'the newest this many messages' }],
    load: () => import('../commands.js').then(module => ({ run: module.runTranscript })),
  },
  {
    path: 'session approve',
    summary: 'Answer what the agent of a session asks permission for',
    args: [session],
    options: [
      { name: 'reject', type: 'boolean', summary: 'say no' },
      { name: 'always', type: 'boolean', summary: 'for the rest of the session' },
      { name: 'request', type: 'text', summary: 'id of the request, when several wait' },
    ],
    load: () => import('../commands.js').then(module => ({ run: module.runApprove })),
  },
  {
    path: 'session prompt',
    summary: 'Send a prompt and show the answer; questions are answered at the terminal',
    args: [session, { name: 'text', optional: true, summary: 'what to ask; - is standard input' }],
    options: [
      { name: 'no-wait', type: 'boolean', summary: 'send it and return' },
      { name: 'mode', type: 'text', summary: 'while a turn runs: queue (default), interrupt or steer' },
      attach,
      { name: 'idempotency-key', type: 'text', summary: 'the same prompt with the same key is sent once' },
      { name: 'message-id', type: 'text', summary: 'id of the message, instead of one that is made' },
    ],
    load: () => import('../commands.js').then(module => ({ run: module.runPrompt })),
  },
  {
    path: 'session attach',
    summary: 'Follow a session, answer its questions and type prompts',
    args: [session],
    load: () => import('../commands.js').then(module => ({ run: module.runAttach })),
  },
  {
    path: 'session wait',
    summary: 'Wait until no turn of a session runs any more',
    args: [session],
    options: [
      { name: 'until', type: 'text', summary: 'states, with commas: idle, prompting, active, stopped …' },
      { name: 'timeout', type: 'integer', summary: 'seconds; default: as long as it takes' },
    ],
    load: () => import('../commands.js').then(module => ({ run: module.runWait })),
  },
  {
    path: 'session resume',
    summary: 'Start a session again that the daemon or its agent interrupted',
    args: [session],
    load: () => import('../commands.js').then(module => ({ run: module.runResume })),
  },
  {
    path: 'session recap',
    summary: 'Show where a session stands: what was said last, what waits',
    args: [session],
    options: [{ name: 'limit', type: 'integer', summary: 'the newest this many messages' }],
    load: () => import('../commands.js').then(module => ({ run: module.runRecap })),
  },
  {
    path: 'session clarify',
    summary: 'Show what the agent of a session asks, or answer it',
    args: [session, { name: 'answer', optional: true, summary: 'the number of a choice, or a text' }],
    options: [{ name: 'request', type: 'text', summary: 'id of the question, when several wait' }],
    load: () => import('../commands.js').then(module => ({ run: module.runClarify })),
  },
  {
    path: 'session runtime',
    summary: 'Show or choose provider, model, effort and speed',
    args: [session],
    options: [
      { name: 'provider', type: 'text', summary: 'another provider for the same agent' },
      { name: 'model', type: 'text', summary: 'a model that the agent offers' },
      {
        name: 'effort',
        type: 'text',
        values: ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'],
        summary: 'how much the model is to think',
      },
      { name: 'speed', type: 'text', values: ['normal', 'fast'], summary: 'how fast it is to answer' },
      { name: 'reset', type: 'boolean', summary: 'as the session began' },
    ],
    load: () => import('../commands.js').then(module => ({ run: module.runRuntime })),
  },
  {
    path: 'session rewind',
    summary: 'Cut a conversation back to before its last prompt; files stay as they are, and are told',
    args: [session],
    options: [{ name: 'message', type: 'text', summary: 'id of another prompt to go back to before' }],
    load: () => import('../commands.js').then(module => ({ run: module.runRewind })),
  },
  {
    path: 'session fork',
    summary: 'Go on with a conversation in a git worktree of its own',
    args: [session],
    options: [
      { name: 'name', type: 'text', summary: 'of the new worktree and its branch svc/<name>' },
      { name: 'worktree', type: 'text', summary: 'one that the repository has, by name or path' },
    ],
    load: () => import('../commands.js').then(module => ({ run: module.runFork })),
  },
]
