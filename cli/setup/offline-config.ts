import { join } from 'node:path'
import { verdict } from '../../plugins/settings/commands.js'
import type { ValidateSettingsReply } from '../../schemas/settings.js'
import type { Given } from '../commands/given.js'
import { loadCheck } from '../daemon/load-daemon.js'
import { CliFault, exitCodes } from '../fault.js'
import type { Io } from '../io.js'
import type { Output } from '../show/output.js'
import { textOf, withSettings, writeText } from './settings-file.js'

/**
 * `svc config set` and `unset` where no daemon answers: judged as a daemon would that starts with it, and written.
 * @throws CliFault `config_invalid`
 */
export async function changeConfig(
  command: string,
  { args, options }: Given,
  { io, out, home }: { readonly io: Io; readonly out: Output; readonly home: string },
): Promise<void> {
  const key = String(args.key)
  const before = textOf(home)
  const after = withSettings(before, { [key]: command === 'config set' ? parsed(String(args.value)) : undefined })
  const check = await loadCheck(io.root, home)
  const { leftOut } = await check(after, join(home, 'config.json')).catch(error => {
    throw refused('config_invalid', (error as Error).message)
  })
  const bad = leftOut.find(({ path }) => path === key || path.startsWith(`${key}.`) || key.startsWith(`${path}.`))
  if (bad) throw refused('config_invalid', bad.text)
  const skipped = after === before
  if (!skipped && options['dry-run'] !== true) writeText(home, after)
  if (out.json) return out.value({ skipped, restart_required: false, next_action: 'none' })
  if (skipped) return out.line('no changes')
  const done = options['dry-run'] === true ? 'would be changed' : 'written'
  out.line(`${key}: ${done}; takes effect when the daemon starts (svc daemon start)`)
}

interface Where {
  readonly io: Io
  readonly home: string
}

/** `svc config check` without a daemon: what the next start would say. Returns the exit code. */
export async function reportConfig({ io, home, out }: Where & { readonly out: Output }): Promise<number> {
  const file = join(home, 'config.json')
  const check = await loadCheck(io.root, home)
  const reply = await check(textOf(home), file).then(
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

/** Before a daemon is ended for another one that would not start. @throws CliFault `config_invalid` */
export async function refuseInvalidConfig({ io, home }: Where): Promise<void> {
  const check = await loadCheck(io.root, home)
  await check(textOf(home), join(home, 'config.json')).catch((error: Error & { next?: string }) => {
    const text = `${error.message}\nThe daemon goes on as it is.`
    throw new CliFault('config_invalid', text, { exit: exitCodes.invalid, next: error.next })
  })
}

const refused = (code: string, why: string) =>
  new CliFault(code, `${why}; nothing was changed`, { exit: exitCodes.invalid, next: 'svc config list' })

/** JSON where it is, else the text as it is, as with a daemon. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
