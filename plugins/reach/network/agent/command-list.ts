import type { Command } from '../../../../kernel/plugin.js'

const channel = { name: 'channel', summary: 'name of a channel' }
const text = { name: 'text', summary: 'text of the message; - reads standard input' }
const KINDS = ['status', 'request', 'reply', 'blocker', 'handoff', 'result', 'review_request']
const about = [
  { name: 'kind', type: 'text', values: KINDS, summary: 'what kind of message it is; default: that of the command' },
  { name: 'correlation', type: 'text', summary: 'messages with the same key form one thread' },
  { name: 'idempotency-key', type: 'text', summary: 'idempotency key; the same message is sent only once' },
] as const
const workspace = { name: 'workspace', type: 'workspace', summary: 'workspace of the channel' } as const
const load = (name: 'runSend' | 'runWatch' | 'runAgentSend' | 'runAgentReply' | 'runAgentReceive') => () =>
  import('../commands.js').then(module => ({ run: module[name] }))

/** Message commands that need more than one request. */
export const agentCommands: readonly Command[] = [
  {
    path: 'network send',
    summary: 'Send a message of a session to peers of a channel',
    args: [channel, { ...text, optional: true }],
    options: [
      { name: 'to', type: 'text', summary: 'id of the peer that it is for, and that it wakes' },
      { name: 'mention', type: 'text', summary: 'ids of peers that it wakes, comma-separated; channel: all of them' },
      {
        name: 'thread',
        type: 'text',
        summary: 'id of the thread; default: that of the answered message, else a new one',
      },
      { name: 'direct', type: 'text', summary: 'id of the direct room' },
      { name: 'reply-to', type: 'text', summary: 'id of the message that it answers' },
      { name: 'work', type: 'text', summary: 'id of the work that it is about' },
      {
        name: 'kind',
        type: 'text',
        values: ['greet', 'whois', 'say', 'capability', 'receipt', 'trace'],
        summary: 'kind of the message; default: say',
      },
      { name: 'intent', type: 'text', summary: 'intent of the message, such as question' },
      { name: 'body', type: 'text', summary: 'body of the message as JSON, instead of a text' },
      { name: 'id', type: 'text', summary: 'id of the message: the same one is sent only once' },
      { name: 'session', type: 'text', summary: 'session that sends it; default: the one this runs in' },
      { name: 'confirm-wakes', type: 'boolean', summary: 'send it although it wakes more than 3 sessions' },
      workspace,
    ],
    load: load('runSend'),
  },
  {
    path: 'network watch',
    summary: 'Follow the messages of a channel, or of all channels of the workspace',
    args: [{ ...channel, optional: true }],
    options: [
      { name: 'recent', type: 'integer', summary: 'how many of the newest messages come first; default: 20' },
      workspace,
    ],
    load: load('runWatch'),
  },
  {
    path: 'ch send',
    summary: 'Send a message to a channel of this session',
    args: [channel, text],
    options: [{ name: 'to', type: 'text', summary: 'session or peer that it is for, and that it wakes' }, ...about],
    load: load('runAgentSend'),
  },
  {
    path: 'ch reply',
    summary: 'Answer a message of a channel of this session',
    args: [{ name: 'message', summary: 'id of the message to answer' }, text],
    options: about,
    load: load('runAgentReply'),
  },
  {
    path: 'ch recv',
    summary: 'Receive the messages that wait for this session in a channel; each comes once',
    args: [channel],
    options: [
      { name: 'wait', type: 'boolean', summary: 'wait up to 25 s when there is none' },
      { name: 'limit', type: 'integer', summary: 'maximum number; default: 20' },
    ],
    load: load('runAgentReceive'),
  },
]
