import { join } from 'node:path'
import { jsonOrText } from '../../kernel/kit/canonical.js'
import { verdict } from '../../plugins/desk/settings/commands.js'
import { repaired } from '../../plugins/desk/settings/repair.js'
import { problemText } from '../../plugins/platform/configuration/document.js'
import type { ValidateSettingsReply } from '../../schemas/settings.js'
import type { Invocation } from '../commands/invocation.js'
import { loadCheck } from '../daemon/load-daemon.js'
import { CliFault, exitCodes } from '../fault.js'
import type { Io } from '../io.js'
import type { Output } from '../show/output.js'
import { asInvalid, textOf, withSettings, writeText } from './settings-file.js'

/**
 * `svc config set` and `unset` without a daemon: validates like a starting daemon, then writes the file.
 * @throws CliFault `config_invalid`
 */
export async function changeConfig(
  command: string,
  invocation: Invocation,
  { io, out, home }: { readonly io: Io; readonly out: Output; readonly home: string },
): Promise<void> {
  const { args, options } = invocation
  const key = String(args.key)
  const before = textOf(home)
  const value = command === 'config set' ? jsonOrText(String(args.value)) : undefined
  const { checkConfig, configChecker } = await loadCheck(io.root, home)
  const file = join(home, 'config.json')
  const problemsOf = await configChecker(file)
  const isBroken = problemsOf(before).length > 0
  const after = isBroken
    ? asInvalid(() => repaired(before, 'config.json', [{ keys: key.split('.'), value }], problemsOf))
    : withSettings(before, { [key]: value })
  if (!isBroken) {
    const { leftOut } = await checkConfig(after, file).catch(error => {
      throw refused('config_invalid', (error as Error).message)
    })
    const bad = leftOut.find(({ path }) => path === key || path.startsWith(`${key}.`) || key.startsWith(`${path}.`))
    if (bad) throw refused('config_invalid', bad.text)
  }
  const skipped = after === before
  if (!skipped && options['dry-run'] !== true && !writeText(home, after, before))
    return changeConfig(command, invocation, { io, out, home })
  const problems = problemsOf(after).map(problemText)
  const more = problems.length > 0 ? { problems } : {}
  if (out.json) return out.value({ skipped, restart_required: false, next_action: 'none', ...more })
  if (skipped) return out.line('no changes')
  const done = options['dry-run'] === true ? 'would be changed' : 'written'
  if (problems.length === 0) return out.line(`${key}: ${done}; takes effect when the daemon starts (svc daemon start)`)
  out.line(`${key}: ${done}; config.json is still not valid, so no daemon starts with it. Correct this as well:`)
  for (const problem of problems) out.line(`  ${problem}`)
}

interface Where {
  readonly io: Io
  readonly home: string
}

/** `svc config check` without a daemon: the result of the next start. Returns the exit code. */
export async function reportConfig({ io, home, out }: Where & { readonly out: Output }): Promise<number> {
  const file = join(home, 'config.json')
  const { checkConfig } = await loadCheck(io.root, home)
  const reply = await checkConfig(textOf(home), file).then(
    ({ unowned, leftOut }): ValidateSettingsReply => ({
      valid: true,
      pending: [],
      unowned: [...unowned],
      left_out: leftOut.map(({ where, text }) => `${where}: ${text}`),
    }),
    (error: Error) => ({ valid: false, problem: error.message, pending: [], unowned: [] }),
  )
  return verdict(out, reply, file) ?? exitCodes.done
}

/** Refuses to replace a running daemon by one that would not start. @throws CliFault `config_invalid` */
export async function refuseInvalidConfig({ io, home }: Where): Promise<void> {
  const { checkConfig } = await loadCheck(io.root, home)
  await checkConfig(textOf(home), join(home, 'config.json')).catch((error: Error & { next?: string }) => {
    const text = `${error.message}\nThe daemon keeps its current settings.`
    throw new CliFault('config_invalid', text, { exit: exitCodes.invalid, next: error.next })
  })
}

const refused = (code: string, why: string) =>
  new CliFault(code, `${why}; nothing was changed`, { exit: exitCodes.invalid, next: 'svc config list' })
