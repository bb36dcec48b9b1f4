import path from 'node:path'
import { jsonOrText } from '../../../kernel/kit/canonical.js'
import type { CommandContext } from '../../../kernel/plugin.js'
import type { ApplyOutcome, PatchKeysBody, SettingKey, ValidateSettingsReply } from '../../../schemas/settings.js'

/** Exit code for an invalid file. */
const INVALID = 7

/** Runs the commands of `svc config` that send several requests or print no table. */
export async function run(context: CommandContext): Promise<number | undefined> {
  const verb = context.path.split(' ').pop() as keyof typeof verbs
  return (await verbs[verb](context)) ?? undefined
}

const verbs = { get, set, unset, check, validate, reload }

async function get(context: CommandContext): Promise<void> {
  const { client, out, args } = context
  const workspace = workspaceOf(context)
  const query = workspace === undefined ? '' : `?workspace_id=${encodeURIComponent(workspace)}`
  const key = encodeURIComponent(String(args.key))
  const { value, pending } = (await client.request('GET', `/api/settings/keys/${key}${query}`)) as SettingKey
  if (out.json) return out.value(value)
  out.line(textOf(value))
  if (pending !== undefined) out.note?.(`${textOf(pending)} takes effect with ${RESTART}`)
}

function set(context: CommandContext) {
  // `9000`, `true`, `["a"]` and `info` are all valid.
  return write(context, { value: jsonOrText(String(context.args.value)) })
}

function unset(context: CommandContext) {
  return write(context, {})
}

async function write(context: CommandContext, change: { value?: unknown }): Promise<void> {
  const { client, args, options } = context
  if (args.key === '') return context.fault('usage', 'the name of the key must not be empty', 'svc config list')
  const workspace = workspaceOf(context)
  const target = options.target ?? (workspace === undefined ? 'global-config' : 'workspace-config')
  const body: PatchKeysBody = {
    changes: [{ key: String(args.key), ...change }],
    target: target as NonNullable<PatchKeysBody['target']>,
    ...(workspace !== undefined && { workspace_id: workspace }),
    ...(options.agent !== undefined && { agent_name: String(options.agent) }),
    ...(options['dry-run'] === true && { dry_run: true }),
  }
  report(context, (await client.request('PATCH', '/api/settings/keys', body)) as ApplyOutcome, String(args.key))
}

/** Prints when a change takes effect, and the remaining step until then. */
function report({ out, options }: CommandContext, outcome: ApplyOutcome, what: string): void {
  if (out.json) out.value(outcome)
  else for (const line of linesOf(outcome, what, options['dry-run'] === true)) out.line(line)
}

function linesOf(outcome: ApplyOutcome, what: string, isDry: boolean): string[] {
  const { warnings = [], partial_failures: failures = [], next_action: next } = outcome
  const failed = failures.map(({ subsystem, diagnostic }) => `${subsystem} could not apply it: ${diagnostic.message}`)
  if (isDry && outcome.skipped_reason === 'dry_run') return [...warnings, `${what} would be changed: ${whenOf[next]}`]
  const waits = outcome.restart_required ? `; changes made before wait for ${RESTART}` : ''
  return [...warnings, ...failed, outcome.skipped ? `no changes${waits}` : `${what}: ${whenOf[next]}`]
}

const RESTART = 'a restart (svc daemon restart)'
const whenOf: Readonly<Record<ApplyOutcome['next_action'], string>> = {
  none: 'in effect now',
  'new-session': 'in effect for sessions that start from now on',
  'restart-daemon': `written; takes effect with ${RESTART}`,
  retry: 'written, but not applied everywhere; try again: svc config reload',
}

async function check({ client, out, home }: CommandContext): Promise<number | undefined> {
  const reply = (await client.request('GET', '/api/settings/check')) as ValidateSettingsReply
  return verdict(out, reply, path.join(home, 'config.json'))
}

async function validate(context: CommandContext): Promise<number | undefined> {
  const { client, out, args, readFile } = context
  if (args.file === undefined) return check(context)
  const text = await readFile(String(args.file))
  const reply = (await client.request('POST', '/api/settings/validate', { text })) as ValidateSettingsReply
  return verdict(out, reply, String(args.file))
}

/** Prints the problems of a file; returns the exit code for an invalid one. */
export function verdict(out: CommandContext['out'], reply: ValidateSettingsReply, file: string): number | undefined {
  const { valid, problem = '', pending, unowned, left_out: leftOut = [] } = reply
  if (out.json) out.value(reply)
  else {
    out.line(valid ? `${file} is valid` : `${file} is not valid:`)
    if (!valid) for (const line of problem.split('\n')) out.line(`  ${line}`)
    if (leftOut.length > 0) out.line('Not used, because they are not valid:')
    for (const line of leftOut) out.line(`  ${line}`)
    if (pending.length > 0) out.line(`Waiting for ${RESTART}: ${pending.join(', ')}`)
    if (unowned.length > 0) out.line(`Without effect, because no plugin owns them: ${unowned.join(', ')}`)
  }
  return valid ? undefined : INVALID
}

async function reload(context: CommandContext): Promise<void> {
  report(context, (await context.client.request('POST', '/api/settings/reload')) as ApplyOutcome, 'config.json')
}

/** Resolves a workspace path against the caller's folder. */
function workspaceOf({ options, cwd }: CommandContext): string | undefined {
  const named = options.workspace === undefined ? undefined : String(options.workspace)
  return named !== undefined && /^\.|\//.test(named) ? path.resolve(cwd, named) : named
}

const textOf = (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value, undefined, 2))
