import { SessionErrors } from './api.js'
import type { SessionsContext } from './context.js'
import type { Deniable } from './points.js'
import type { SessionRow } from './table.js'
import { infoOf } from './wire.js'

/** What taps handed on. Throws `hook_denied` (403) where one of them refused. */
export function allowed<T extends Deniable>(value: T): T {
  if (value.deny !== undefined) throw SessionErrors.hook_denied(value.deny)
  return value
}

/** The text of a prompt after everybody who may change it had a look. Throws `hook_denied` (403). */
export async function submitted({ points }: SessionsContext, row: SessionRow | undefined, message: string) {
  if (!row) return message
  return allowed(await points.inputPreSubmit.run({ message }, infoOf(row))).message
}

/** The same for what an agent is given. */
export async function assembled({ points }: SessionsContext, row: SessionRow, texts: readonly string[]) {
  return allowed(await points.promptPostAssemble.run({ texts }, infoOf(row))).texts
}
