import { join } from 'node:path'
import type { Given } from '../commands/parse-command.js'
import { loadCheck } from '../daemon/load-daemon.js'
import { CliFault, exitCodes } from '../fault.js'
import type { Io } from '../io.js'
import type { Output } from '../show/output.js'
import { textOf, withSettings, writeText } from './settings-file.js'

/**
 * `svc config set` and `unset` where no daemon answers: judged as a daemon would that starts with it, and written.
 * @throws CliFault `config_invalid`, `setting_unknown`
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
  const { unowned } = await check(after, join(home, 'config.json')).catch(error => {
    throw refused('config_invalid', (error as Error).message)
  })
  if (unowned.includes(key.split('.')[0] ?? '')) throw refused('setting_unknown', `there is no setting ${key}`)
  const skipped = after === before
  if (!skipped && options['dry-run'] !== true) writeText(home, after)
  if (out.json) return out.value({ skipped, restart_required: false, next_action: 'none' })
  if (skipped) return out.line('no changes')
  const done = options['dry-run'] === true ? 'would be changed' : 'written'
  out.line(`${key}: ${done}; takes effect when the daemon starts (svc daemon start)`)
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
