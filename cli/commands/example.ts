import type { Parameter } from './command-data.js'
import type { Entry } from './find-command.js'

/** ID prefixes by the word before `id`, or by the group of the command. */
const idPrefixes: Readonly<Record<string, string>> = {
  session: 'ses',
  workspace: 'ws',
  job: 'job',
  jobs: 'job',
  trigger: 'trg',
  triggers: 'trg',
  run: 'run',
  runs: 'run',
  task: 'task',
  task_run: 'trun',
  bundle: 'act',
  bridge: 'bri',
}
const byType: Readonly<Record<Parameter['type'], string>> = {
  text: 'text',
  file: '.',
  workspace: 'app',
  integer: '10',
  number: '1.5',
  boolean: '',
  list: 'one',
  json: `'{}'`,
}
/** Example values by name. */
const byName: Readonly<Record<string, string>> = {
  agent: 'report',
  agent_name: 'report',
  kind: 'automation.job',
  shell: 'bash',
  every: '1h',
  since: '2030-01-31T09:00:00Z',
  text: `'Look at the tests'`,
  prompt: `'Look at the tests'`,
  schedule: `'{"mode":"every","interval":"1h"}'`,
  scope: 'global',
}

/** Example names by group or argument. */
const byThing: Readonly<Record<string, string>> = {
  agent: 'scout',
  app: 'session',
  desktop: 'work',
  extension: 'acme.hello',
  plugin: 'sessions',
  provider: 'claude',
  session: '@last',
  window: 'left',
  workspace: '.',
  worktree: 'fix-tests',
  job: 'nightly',
  jobs: 'nightly',
  trigger: 'after',
  triggers: 'after',
  run: '@last',
  runs: '@last',
  task: '@last',
  task_run: '@last',
  bridge: '@last',
  mcp: 'docs',
  notification: '@last',
  notifications: 'failures',
  profile: '@last',
  skill: 'release-notes',
  triage: '@last',
}
/** Examples of commands whose arguments are not self-explanatory. */
const written: Readonly<Record<string, string>> = {
  'agent duplicate': 'scout second',
  'agent heartbeat rollback': 'scout rev_0000000000000001',
  'agent heartbeat validate': 'scout --file HEARTBEAT.md',
  'agent heartbeat wake': 'scout --dry-run',
  'agent heartbeat write': 'scout --file HEARTBEAT.md',
  'agent info': 'report',
  'agent soul rollback': 'scout rev_0000000000000001',
  'agent soul validate': 'scout --file SOUL.md',
  'agent soul write': 'scout --file SOUL.md',
  'audit verify': '',
  'auth key delete': 'key_0000000000000001',
  'automation jobs create': `nightly --every 1d --prompt 'Look at the tests'`,
  'automation jobs history': 'nightly',
  'automation jobs update': `nightly --prompt 'Look at the tests'`,
  'automation runs list': '--status completed',
  'automation suggestions accept': 'sug_0000000000000001',
  'automation suggestions dismiss': 'sug_0000000000000001',
  'automation suggestions propose': `'{"job":{"name":"tests","prompt":"Look at the tests","schedule":{"mode":"every","interval":"1d"}}}'`,
  'automation triggers create': `after --event session.stopped --prompt 'Look at the tests'`,
  'automation triggers test': `after --body '{"ref":"main"}'`,
  'automation triggers update': `after --prompt 'Look at the tests'`,
  'backup create': '',
  'backup delete': 'svc-2030-01-31T090000000Z-0a1b2c3d.tar',
  'backup export': 'svc-2030-01-31T090000000Z-0a1b2c3d.tar --to move.tar',
  'backup restore': 'svc-2030-01-31T090000000Z-0a1b2c3d.tar --home ~/restored',
  'backup verify': 'svc-2030-01-31T090000000Z-0a1b2c3d.tar',
  'bridge create': `--display-name Team --platform slack --extension bridge-slack --enabled --routing-policy '{"include_group":true}'`,
  'bridge discard': '@last dlv_0000000000000001',
  'bridge manifest slack': '@last',
  'bridge resend': '@last dlv_0000000000000001',
  'bridge secret-bindings delete': '@last bot_token',
  'bridge secret-bindings list': '@last',
  'bridge secret-bindings put': '@last bot_token',
  'bridge send-test': `@last --message 'Can you read this?'`,
  'bridge setup': 'slack',
  'bridge watch': 'bri_0000000000000001',
  'bridge webhook register': '@last',
  'budget remove': 'agent report',
  'budget set': 'agent report --cost-usd 5',
  'budget show': 'agent report',
  'bundle activate': '--extension release-kit --bundle release --profile default',
  'bundle deactivate': 'act_0000000000000001',
  'bundle get': 'act_0000000000000001',
  'bundle preview': '--extension release-kit --bundle release --profile default',
  'bundle update': 'act_0000000000000001 --expected-version 1',
  'ch recv': 'team --wait',
  'ch reply': `msg_0000000000000001 'I look at them'`,
  'ch send': `team 'Look at the tests' --to report.ses_0000000000000001`,
  'completion install': 'bash',
  'completion uninstall': 'bash',
  'config get': 'log.level',
  'config schema': '',
  'config set': 'log.level debug',
  'config show': 'log.level',
  'config unset': 'log.level',
  'config validate': 'config.json',
  'daemon start': '',
  'desktop clients': '',
  'desktop create': 'Work --id work',
  'desktop delete': 'work',
  'desktop list': '',
  'desktop reorder': 'work 0',
  'desktop switch': 'work',
  'desktop update': `work --name 'At work'`,
  'extension build': './acme.hello --out acme.hello.tar.gz',
  'extension dev': './acme.hello',
  'extension init': 'acme.hello',
  'extension install': './acme.hello',
  'extension logs': 'acme.hello',
  'extension publish': './acme.hello --to ~/catalog',
  'extension remove': 'acme.hello',
  'extension test': './acme.hello',
  'extension update': 'acme.hello --dry-run',
  'extension validate': './acme.hello',
  'hooks info': 'guard',
  'hooks list': '',
  'hooks runs': '@last --outcome failed',
  'layout apply': '--file layout.json',
  'layout arrange': 'columns',
  'layout balance': '',
  'layout export': '--save two-up',
  'layout get': '',
  'layout preview': '--file layout.json',
  'layout redo': '',
  'layout undo': '',
  'layout validate': 'layout.json',
  'logs events': `--type 'task.*'`,
  'man install': '',
  'man uninstall': '',
  'marketplace info': 'skill release-notes',
  'marketplace list': 'skill',
  'marketplace search': 'notes',
  'mcp add': 'docs --url https://docs.example.com/mcp',
  'mcp auth login': 'docs',
  'mcp install': 'github',
  'mcp serve': '',
  'me notify': `'The tests pass'`,
  'network accept-offers': '--agent report',
  'network channels create': 'team --agent-names report',
  'network channels show': 'team',
  'network channels update': 'team --fanout-policy coordinator',
  'network coordination status': 'workspace',
  'network directs list': 'team',
  'network directs messages': 'team direct_00000000000000000000000000000001',
  'network directs open': 'team report.ses_0000000000000001 --session @last',
  'network directs show': 'team direct_00000000000000000000000000000001',
  'network join': 'nats://nats.example.com:4222 --realm studio',
  'network offer': '@last',
  'network peer add':
    'laptop ed25519:2ZY/1N+0IViGPB/HKmwQR/AOj/JFs9NPMTfxh1Chgec= --fingerprint SHA256:zSP6opCClQkRkyHkQh8gTGTEoAkwo5NaIdQ8Wv5b+lg',
  'network peer remove': 'laptop',
  'network peers show': 'report.ses_0000000000000001',
  'network send': `team 'Look at the tests' --session @last`,
  'network share': 'team',
  'network subscribe': 'team --mode mentions --session @last',
  'network subscriptions': 'team',
  'network threads list': 'team',
  'network threads messages': 'team thread_tests',
  'network threads promote': 'team thread_tests msg_0000000000000001',
  'network threads show': 'team thread_tests',
  'network unshare': 'team',
  'network unsubscribe': 'team @last',
  'network withdraw': '@last',
  'network work lookup': 'work_tests',
  'notifications preset create': `failures --events 'task.run_failed,automation.run.failed'`,
  'notifications preset disable': 'failures',
  'notifications preset enable': 'failures',
  'notifications preset update': 'failures --cooldown 10m',
  'observe overview': '--in .',
  overview: '--in .',
  'provider auth login': 'claude',
  'provider models refresh': '',
  'provider models set': 'claude opus --default-effort high',
  'resource delete': 'automation.job tidy --expected-version 1',
  'resource get': 'automation.job tidy',
  'resource list': 'automation.job',
  'resource put': 'automation.job tidy --file job.json',
  run: `'Summarise the TODOs in this folder'`,
  'service install': '',
  'service status': '',
  'service uninstall': '',
  'session approve': '@last --yes',
  'session attach': '@last',
  'session clarify': '@last 1',
  'session deny': '@last',
  'session events': '@last',
  'session input remove': '@last prq_0000000000000001',
  'session list': '--state active',
  'session prompt': `@last 'And now the tests'`,
  'session rename': `@last 'Look at the tests'`,
  'session rewind': '@last',
  'session wait': '@last --until idle',
  'skill install': 'release-notes',
  spawn: 'report',
  'support bundle': '--yes',
  'task block': `@last --kind needs_input --reason 'Which release?'`,
  'task child create': `@last 'Write the notes'`,
  'task create': `'Mend the tests'`,
  'task dependency add': 'task_0000000000000001 @last',
  'task dependency remove': 'task_0000000000000001 @last',
  'task fail': `@last --error 'The tests fail'`,
  'task fan-out': `@last --designations '[{"brief":"the parser"},{"brief":"the printer"}]' --idempotency-key parts`,
  'task next': '',
  'task notification add': '@last bri_0000000000000001 --delivery-mode direct-send --scope global',
  'task notification remove': '@last sub_0000000000000001',
  'task notification show': '@last sub_0000000000000001',
  'task pause': `@last --reason 'Wait for the release'`,
  'task profile set': '@last --agent scout',
  'task profile worktree': '@last per_run',
  'task retry': '@last',
  'task review cancel': 'trev_0000000000000001',
  'task review list': '@last',
  'task review request': '@last --within 1d',
  'task review route': 'trev_0000000000000001 --session-id @last',
  'task review show': 'trev_0000000000000001',
  'task review start': 'trev_0000000000000001',
  'task review verdict': `trev_0000000000000001 approved --reason 'It works'`,
  'task run bulk fail': '--run-ids trun_0000000000000001',
  'task run bulk release': '--run-ids trun_0000000000000001',
  'task run enqueue': '@last',
  'task run fail': `@last --reason 'The tests fail'`,
  'task run list': '@last',
  'task unblock': '@last tblk_0000000000000001',
  'tool approve': 'tap_0000000000000001',
  'tool call': 'service__workspace_list',
  'tool grants delete': 'tgr_0000000000000001',
  'tool grants put': 'service__workspace_list --decision allow --scope agent',
  'tool search': 'workspaces',
  'tool show': 'service__workspace_list',
  'toolset show': 'core',
  top: '--in .',
  'vault delete': 'vault:mcp/global/github/env/TOKEN',
  'vault put': 'vault:mcp/global/github/env/TOKEN',
  'vault show': 'vault:mcp/global/github/env/TOKEN',
  why: '@last',
  'window close': 'right',
  'window float': 'left',
  'window group': 'left right',
  'window move': 'left --desktop work',
  'window navigate': 'left /sessions',
  'window open': 'session --id left',
  'window resize': 'left horizontal 0.1',
  'window swap': 'left right',
  'workspace edit': '. --name demo',
}

/** The prefix of the IDs that an argument takes; undefined when it takes no ID. */
export function idPrefixOf(path: string, argument: string): string | undefined {
  const word = thingOf(path, argument)
  return word !== undefined && Object.hasOwn(idPrefixes, word) ? idPrefixes[word] : undefined
}

/** The kind of an ID: the word before `id`, or the group of the command. */
function thingOf(path: string, argument: string): string | undefined {
  const thing = /^(\w+?)[_-]?id$/.exec(argument)?.[1] ?? (argument === 'id' ? path.split(' ').at(-2) : undefined)
  // Other runs are those of automation.
  return thing === 'run' && path.startsWith('task ') ? 'task_run' : thing
}

interface Wanted {
  readonly name: string
  readonly type: Parameter['type']
  readonly values?: readonly string[]
  readonly fallback?: string
}

/**
 * An example call of a command, valid when the named items exist: the written one, else one with all required arguments and one
 * option.
 */
export function exampleOf(entry: Entry): string {
  const more = written[entry.path]
  if (more !== undefined) return `svc ${entry.path} ${more}`.trimEnd()
  const words = ['svc', entry.path]
  if (entry.kind !== 'route') {
    for (const { name, optional } of entry.args) if (!optional) words.push(sample(entry, { name, type: 'text' }))
    const [option] = entry.options
    // A condition has no guessable value, and the workspace defaults to the current one.
    if (option && !/digest|workspace/.test(option.name)) words.push(...optionWords(option.name, sample(entry, option)))
    return words.join(' ')
  }
  const wanted = (parameter: Parameter): Wanted => ({
    name: parameter.name,
    type: parameter.type,
    ...(parameter.values && { values: parameter.values }),
    ...(parameter.default !== undefined && { fallback: parameter.default }),
  })
  for (const arg of entry.args) if (arg.required || arg.default !== undefined) words.push(sample(entry, wanted(arg)))
  const needed = entry.options.filter(({ required }) => required)
  const other = entry.options.find(({ required, type, values }) => !required && (values || type === 'integer'))
  for (const option of needed.length > 0 || !other ? needed : [other]) {
    const short = entry.shorthands?.find(({ member }) => option.in === 'body' && member === option.name)
    if (short) words.push(...optionWords(short.option, byName[short.option] ?? byType.text))
    else words.push(...optionWords(option.option, sample(entry, wanted(option))))
  }
  return words.join(' ')
}

const optionWords = (name: string, value: string) => (value === '' ? [`--${name}`] : [`--${name}`, value])

function sample(entry: Entry, { name, type, values, fallback }: Wanted): string {
  if (fallback !== undefined) return fallback
  if (values?.[0] !== undefined) return values[0]
  const known = byName[name]
  if (known !== undefined && (type === 'text' || type === 'json')) return known
  const [group = ''] = entry.path.split(' ')
  const word = thingOf(entry.path, name) ?? (name === 'name' ? group : name)
  return byThing[word] ?? (byThing[group] !== undefined && name === 'name' ? byThing[group] : byType[type])
}
